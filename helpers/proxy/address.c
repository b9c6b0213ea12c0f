#include "address.h"

#include <netinet/in.h>
#include <string.h>

socklen_t address_to_socket(const struct host_address *address, uint16_t port,
                            struct sockaddr_storage *storage)
{
	memset(storage, 0, sizeof *storage);
	if (host_address_is_v4(address)) {
		struct sockaddr_in *in = (struct sockaddr_in *)storage;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, address->bytes + 12, 4);
		return sizeof *in;
	}
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)storage;

	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, address->bytes, 16);
	return sizeof *in6;
}

bool address_from_socket(const struct sockaddr *socket_address, struct host_address *address)
{
	if (socket_address->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)socket_address;

		host_address_set_v4(address, ntohl(in->sin_addr.s_addr));
		return true;
	}
	if (socket_address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)socket_address;

		host_address_set_v6(address, in6->sin6_addr.s6_addr);
		return true;
	}
	return false;
}
