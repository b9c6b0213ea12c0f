/*
 * What sockets can still do.  Prints "NAME ERRNO" lines; 0 is success.
 *
 *   sockets                     makes sockets of every family and kind, and pairs
 *   sockets stream PATH         connects to a unix stream socket
 *   sockets dgram PATH          sends to a unix datagram socket in every way there is
 *   sockets abstract NAME       the same two, abstract
 *   sockets tcp ADDRESS PORT    connects, and sends with MSG_FASTOPEN
 *   sockets udp ADDRESS PORT    sends a datagram
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* clang-format off: it cannot lay out initialisers in macros */
#define FAMILY(family, type, protocol)                                                             \
	{                                                                                              \
#family " " #type " " #protocol, family, type, protocol                                    \
	}
/* clang-format on */

struct kind {
	const char *name;
	int family;
	int type;
	int protocol;
};

static const struct kind kinds[] = {
	FAMILY(AF_UNIX, SOCK_STREAM, 0),
	FAMILY(AF_UNIX, SOCK_DGRAM, 0),
	FAMILY(AF_UNIX, SOCK_SEQPACKET, 0),
	FAMILY(AF_UNIX, SOCK_RAW, 0),
	FAMILY(AF_INET, SOCK_STREAM, 0),
	FAMILY(AF_INET, SOCK_STREAM, IPPROTO_TCP),
	FAMILY(AF_INET, SOCK_STREAM, 132 /*SCTP*/),
	FAMILY(AF_INET, SOCK_STREAM, 262 /*MPTCP*/),
	FAMILY(AF_INET, SOCK_DGRAM, 0),
	FAMILY(AF_INET, SOCK_DGRAM, IPPROTO_ICMP),
	FAMILY(AF_INET, SOCK_DGRAM, 115 /*L2TP*/),
	FAMILY(AF_INET, SOCK_RAW, IPPROTO_ICMP),
	FAMILY(AF_INET, SOCK_RAW, IPPROTO_RAW),
	FAMILY(AF_INET, SOCK_SEQPACKET, 132 /*SCTP*/),
	FAMILY(AF_INET, 6 /*DCCP*/, 33),
	FAMILY(AF_INET, 10 /*SOCK_PACKET*/, 0),
	FAMILY(AF_INET6, SOCK_STREAM, 0),
	FAMILY(AF_INET6, SOCK_DGRAM, 0),
	FAMILY(AF_INET6, SOCK_RAW, 58),
	FAMILY(AF_NETLINK, SOCK_RAW, 0 /*ROUTE*/),
	FAMILY(AF_NETLINK, SOCK_DGRAM, 0 /*ROUTE*/),
	FAMILY(AF_NETLINK, SOCK_RAW, 2 /*USERSOCK*/),
	FAMILY(AF_NETLINK, SOCK_RAW, 9 /*AUDIT*/),
	FAMILY(AF_NETLINK, SOCK_RAW, 12 /*NETFILTER*/),
	FAMILY(AF_NETLINK, SOCK_RAW, 15 /*KOBJECT_UEVENT*/),
	FAMILY(AF_PACKET, SOCK_RAW, 0),
	FAMILY(AF_PACKET, SOCK_DGRAM, 0),
	FAMILY(AF_KEY, SOCK_RAW, 2),
	FAMILY(AF_ALG, SOCK_SEQPACKET, 0),
	FAMILY(AF_BLUETOOTH, SOCK_RAW, 1),
	FAMILY(AF_CAN, SOCK_RAW, 1),
	FAMILY(AF_TIPC, SOCK_DGRAM, 0),
	FAMILY(AF_RDS, SOCK_SEQPACKET, 0),
	FAMILY(AF_VSOCK, SOCK_STREAM, 0),
	FAMILY(AF_KCM, SOCK_DGRAM, 0),
	FAMILY(43 /*AF_SMC*/, SOCK_STREAM, 0),
	FAMILY(44 /*AF_XDP*/, SOCK_RAW, 0),
	FAMILY(45 /*AF_MCTP*/, SOCK_DGRAM, 0),
};

static void say(const char *name, long result)
{
	printf("%s %d\n", name, result < 0 ? errno : 0);
}

static void try_socket(const char *name, long family, long type, long protocol)
{
	long fd = syscall(SYS_socket, family, type, protocol);

	say(name, fd);
	if (fd >= 0)
		close((int)fd);
}

static void try_pair(const char *name, long family, long type)
{
	int ends[2];
	long result = syscall(SYS_socketpair, family, type, 0, ends);

	say(name, result);
	if (result >= 0) {
		close(ends[0]);
		close(ends[1]);
	}
}

/* What a pair must still do. */
static void use_pair(void)
{
	const int size = 65536;
	char byte = 'x';
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		return;
	say("pair setsockopt", setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
	say("pair sendto", sendto(ends[0], &byte, 1, 0, NULL, 0));
	say("pair send", send(ends[0], &byte, 1, MSG_NOSIGNAL));
	say("pair recv", recv(ends[1], &byte, 1, 0));
	say("pair shutdown", shutdown(ends[0], SHUT_WR));
	close(ends[0]);
	close(ends[1]);
}

static int every_kind(void)
{
	const long garbage = (long)0x7700000000000000;
	size_t number;

	for (number = 0; number < sizeof kinds / sizeof *kinds; number++) {
		const struct kind *kind = &kinds[number];

		try_socket(kind->name, kind->family, kind->type, kind->protocol);
		try_socket("  the same, SOCK_CLOEXEC", kind->family, kind->type | SOCK_CLOEXEC,
		           kind->protocol);
	}
	try_socket("garbage AF_UNIX", garbage | AF_UNIX, SOCK_STREAM, 0);
	try_socket("garbage AF_INET", garbage | AF_INET, SOCK_STREAM, 0);
	try_socket("garbage AF_INET raw", AF_INET, garbage | SOCK_RAW, garbage | IPPROTO_ICMP);
	try_socket("garbage AF_VSOCK", garbage | AF_VSOCK, SOCK_STREAM, 0);
	try_socket("garbage AF_NETLINK audit", AF_NETLINK, SOCK_RAW, garbage | 9);
	try_pair("socketpair stream", AF_UNIX, SOCK_STREAM);
	try_pair("socketpair stream cloexec", AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
	try_pair("socketpair seqpacket", AF_UNIX, SOCK_SEQPACKET);
	try_pair("socketpair dgram", AF_UNIX, SOCK_DGRAM);
	try_pair("socketpair dgram cloexec", AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC);
	try_pair("socketpair raw", AF_UNIX, SOCK_RAW); /* a datagram pair to the kernel */
	try_pair("socketpair garbage dgram", AF_UNIX, garbage | SOCK_DGRAM);
	try_pair("socketpair garbage family", garbage | AF_UNIX, SOCK_DGRAM);
	try_pair("socketpair tipc", AF_TIPC, SOCK_STREAM);
	use_pair();
	return 0;
}

static socklen_t unix_address(struct sockaddr_un *address, const char *path, int abstract)
{
	size_t length = strlen(path);

	memset(address, 0, sizeof *address);
	address->sun_family = AF_UNIX;
	if (length + 1 >= sizeof address->sun_path)
		exit(2);
	memcpy(address->sun_path + abstract, path, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
}

static void connect_stream(const char *path, int abstract)
{
	struct sockaddr_un address;
	socklen_t length = unix_address(&address, path, abstract);
	int ends[2], fd = socket(AF_UNIX, SOCK_STREAM, 0);

	say("stream socket", fd);
	if (fd >= 0)
		say("stream connect", connect(fd, (struct sockaddr *)&address, length));
	/* an end of a pair is a unix socket as well */
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) {
		say("stream pair connect", connect(ends[0], (struct sockaddr *)&address, length));
		say("stream pair bind", bind(ends[0], (struct sockaddr *)&address, length));
		say("stream pair sendto",
		    sendto(ends[0], "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&address, length));
	}
}

static void send_datagrams(const char *path, int abstract)
{
	static const int types[] = { SOCK_DGRAM, SOCK_RAW };
	struct sockaddr_un address;
	socklen_t length = unix_address(&address, path, abstract);
	struct iovec part = { .iov_base = "attack", .iov_len = 6 };
	struct msghdr message = {
		.msg_name = &address, .msg_namelen = length, .msg_iov = &part, .msg_iovlen = 1
	};
	struct mmsghdr many = { .msg_hdr = message };
	int ends[2], fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	size_t number;

	say("dgram socket", fd);
	if (fd >= 0) {
		say("dgram sendto", sendto(fd, "attack", 6, 0, (struct sockaddr *)&address, length));
		say("dgram connect", connect(fd, (struct sockaddr *)&address, length));
	}
	for (number = 0; number < 2; number++) {
		if (socketpair(AF_UNIX, types[number], 0, ends) < 0) {
			say("dgram pair", -1);
			continue;
		}
		say("dgram pair sendto",
		    sendto(ends[0], "attack", 6, 0, (struct sockaddr *)&address, length));
		say("dgram pair sendmsg", sendmsg(ends[0], &message, 0));
		say("dgram pair sendmmsg", sendmmsg(ends[0], &many, 1, 0));
		say("dgram pair connect", connect(ends[0], (struct sockaddr *)&address, length));
	}
}

static int internet(const char *kind, const char *host, int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd;

	if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
		return 2;
	fd = socket(AF_INET, strcmp(kind, "udp") == 0 ? SOCK_DGRAM : SOCK_STREAM, 0);
	say("socket", fd);
	if (fd < 0)
		return 0;
	if (strcmp(kind, "udp") == 0) {
		say("sendto", sendto(fd, "x", 1, 0, (struct sockaddr *)&address, sizeof address));
		return 0;
	}
	say("fastopen", sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&address,
	                       sizeof address));
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	say("connect", connect(fd, (struct sockaddr *)&address, sizeof address));
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc == 1)
		return every_kind();
	if (argc == 3 && strcmp(argv[1], "stream") == 0) {
		connect_stream(argv[2], 0);
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "dgram") == 0) {
		send_datagrams(argv[2], 0);
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "abstract") == 0) {
		connect_stream(argv[2], 1);
		send_datagrams(argv[2], 1);
		return 0;
	}
	if (argc == 4)
		return internet(argv[1], argv[2], atoi(argv[3]));
	return 2;
}
