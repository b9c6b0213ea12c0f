#include "listeners.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "close_keeping_errno.h"
#include "loopback.h"
#include "protocol.h"

/* Who connects waits here while the supervisor has other things to do. */
enum { BACKLOG = 4096 };

static int open_listener(const struct request_proxy *proxy)
{
	const int yes = 1;
	struct sockaddr_storage address;
	socklen_t length = loopback_address(proxy->inside, proxy->inside_port, &address);
	int fd = loopback_socket(&address);

	if (fd < 0)
		return -1;
	if ((address.ss_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) < 0) ||
	    bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, BACKLOG) < 0) {
		close_keeping_errno(fd);
		return -1;
	}
	return fd;
}

/* Whether this network namespace has no such address (IPv6 may be off). */
static int is_absent(int errnum)
{
	return errnum == EAFNOSUPPORT || errnum == EADDRNOTAVAIL || errnum == EPROTONOSUPPORT;
}

static int send_listeners(int control, struct message *out, const int *listeners)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(PROXIES_MOST * sizeof(int))];
	} rights;
	size_t length = (size_t)out->value * sizeof(int);
	struct iovec part = { .iov_base = out, .iov_len = sizeof *out };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *header;

	if (out->value > 0) {
		memset(&rights, 0, sizeof rights);
		message.msg_control = &rights;
		message.msg_controllen = CMSG_SPACE(length);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(length);
		memcpy(CMSG_DATA(header), listeners, length);
	}
	return sendmsg(control, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

int listeners_hand_out(const struct request_view *view, int control, char *text, size_t size)
{
	struct message message = { .type = MESSAGE_LISTENERS };
	char address[LOOPBACK_TEXT];
	int listeners[PROXIES_MOST], count = 0, result = 0, errnum;
	uint32_t number;

	for (number = 0; number < view->request->proxy_count && result == 0; number++) {
		const struct request_proxy *proxy = &request_proxies(view)[number];
		int fd = open_listener(proxy);

		if (fd >= 0) {
			listeners[count++] = fd;
			message.text[number] = 1;
		} else if (!(proxy->flags & PROXY_OPTIONAL) || !is_absent(errno)) {
			snprintf(text, size, "cannot listen at %s in the sandbox",
			         loopback_text(proxy->inside, proxy->inside_port, address));
			result = -1;
		}
	}
	message.value = count;
	if (result == 0) {
		result = send_listeners(control, &message, listeners);
		snprintf(text, size, "cannot hand out the sandbox's listeners");
	}
	errnum = errno;
	while (count > 0)
		close(listeners[--count]);
	errno = errnum;
	return result;
}
