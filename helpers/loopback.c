#include "loopback.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { MAPPED = 12 }; /* where in a mapped address that of IPv4 begins */

static int is_mapped(const uint8_t *address)
{
	struct in6_addr copy;

	memcpy(&copy, address, sizeof copy);
	return IN6_IS_ADDR_V4MAPPED(&copy);
}

socklen_t loopback_address(const uint8_t *address, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in *four = (struct sockaddr_in *)out;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof *out);
	if (is_mapped(address)) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		memcpy(&four->sin_addr, address + MAPPED, sizeof four->sin_addr);
		return sizeof *four;
	}
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	memcpy(&six->sin6_addr, address, sizeof six->sin6_addr);
	return sizeof *six;
}

int loopback_socket(const struct sockaddr_storage *address)
{
	return socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

const char *loopback_text(const uint8_t *address, uint16_t port, char text[LOOPBACK_TEXT])
{
	char name[INET6_ADDRSTRLEN] = "?";

	if (is_mapped(address))
		inet_ntop(AF_INET, address + MAPPED, name, sizeof name);
	else
		inet_ntop(AF_INET6, address, name, sizeof name);
	snprintf(text, LOOPBACK_TEXT, is_mapped(address) ? "%s:%u" : "[%s]:%u", name, port);
	return text;
}
