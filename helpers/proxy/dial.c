#include "dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "address.h"
#include "clock.h"

/* A peer that went away without a word is found out, however long it is silent. */
static void keep_alive(int fd)
{
	const int on = 1, idle = 60, interval = 15, probes = 4;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
	/* What comes in small pieces goes on in small pieces. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Whether ADDRESS is being dialled; else errno. */
static bool attempt(struct connection *connection, const struct host_address *address)
{
	struct sockaddr_storage storage;
	socklen_t length = address_to_socket(address, connection->target.port, &storage);
	struct flow_set *set = &connection->proxy->set;

	connection->server =
		socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (connection->server < 0)
		return false;
	if (connect(connection->server, (struct sockaddr *)&storage, length) != 0 &&
	    errno != EINPROGRESS)
		return false;
	return watch_set(set, &connection->server_watch, connection->server, EPOLLOUT) == 0;
}

static void next_attempt(struct connection *connection, int errnum)
{
	struct addresses *addresses = &connection->addresses;
	uint64_t now = clock_now();

	while (connection->address_next < addresses->count && now < connection->connect_deadline) {
		connection->deadline = now + (uint64_t)ATTEMPT_SECONDS * NS_PER_SECOND;
		if (connection->address_next + 1 == addresses->count ||
		    connection->deadline > connection->connect_deadline)
			connection->deadline = connection->connect_deadline;
		if (attempt(connection, &addresses->list[connection->address_next++]))
			return;
		errnum = errno;
		connection_hang_up(connection, &connection->server, false);
	}
	connection_fail(connection, errnum == ETIMEDOUT ? FAILURE_TIMEOUT : FAILURE_UNREACHABLE,
	                strerror(errnum));
}

void dial_begin(struct connection *connection)
{
	connection->state = STATE_DIALING;
	connection->address_next = 0;
	connection->connect_deadline = clock_now() + (uint64_t)CONNECT_SECONDS * NS_PER_SECOND;
	next_attempt(connection, ENETUNREACH);
}

void dial_ready(struct connection *connection)
{
	int errnum = 0;
	socklen_t length = sizeof errnum;

	if (getsockopt(connection->server, SOL_SOCKET, SO_ERROR, &errnum, &length) != 0)
		errnum = errno;
	if (errnum != 0) {
		connection_hang_up(connection, &connection->server, false);
		next_attempt(connection, errnum);
		return;
	}
	connection->deadline = 0;
	keep_alive(connection->client);
	keep_alive(connection->server);
	connection_dialled(connection);
}

void dial_overdue(struct connection *connection)
{
	connection_hang_up(connection, &connection->server, false);
	next_attempt(connection, ETIMEDOUT);
}
