#include "relay.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "loopback.h"

enum {
	CONNECTIONS_MOST = 1024, /* the others wait in the listener's backlog */
	CONNECTIONS_LEAST = 16,
	CONNECTION_FILES = 4, /* two sockets, and a pipe while bytes wait */
	OTHER_FILES = 64,
	ACCEPTED_AT_ONCE = 64,
	FINISH_TURNS = 1000,
};

/* After an accept(2) that failed for want of something. */
#define PAUSE_NS ((uint64_t)NS_PER_SECOND / 20)
#define FINISH_NS ((uint64_t)NS_PER_SECOND / 10)

struct relay_connection {
	struct flow flow; /* once both sockets are there */
	struct watch dial;
	struct relay *relay;
	const struct request_proxy *proxy;
	struct relay_connection *next, **previous;
	uint32_t choice; /* which address of the proxy is dialled */
	int client;      /* -1: the flow's, or closed */
	int server;
};

/* ---- connections ------------------------------------------------------------------------------ */

static void accept_again(struct relay *relay);

static void release(struct relay_connection *connection)
{
	struct relay *relay = connection->relay;

	*connection->previous = connection->next;
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	relay->connection_count--;
	free(connection);
	if (relay->resume_at != UINT64_MAX)
		accept_again(relay);
}

static void flow_over(struct flow *flow, int errnum)
{
	(void)errnum;
	release(flow->context);
}

static void dial_retired(struct watch *watch)
{
	release((struct relay_connection *)((char *)watch - offsetof(struct relay_connection, dial)));
}

/* Of one that has no flow yet: closed on our side, which is a reset where something was sent. */
static void give_up(struct relay_connection *connection)
{
	if (connection->server >= 0)
		watch_close(&connection->relay->set, connection->server);
	close(connection->client);
	connection->client = connection->server = -1;
	watch_retire(&connection->relay->set, &connection->dial);
}

static void connected(struct relay_connection *connection)
{
	int client = connection->client, server = connection->server;

	connection->client = connection->server = -1;
	connection->dial.ready = NULL;
	connection->flow.over = flow_over;
	connection->flow.context = connection;
	if (flow_begin(&connection->relay->set, &connection->flow, client, server) < 0)
		watch_retire(&connection->relay->set, &connection->dial);
}

/* Dials the next address that there is, until one takes us. */
static void dial(struct relay_connection *connection)
{
	const struct request_proxy *proxy = connection->proxy;

	for (; connection->choice < proxy->outside_count; connection->choice++) {
		struct sockaddr_storage address;
		socklen_t length =
			loopback_address(proxy->outside[connection->choice], proxy->outside_port, &address);
		int fd = loopback_socket(&address);

		if (fd < 0)
			continue;
		if ((connect(fd, (struct sockaddr *)&address, length) == 0 || errno == EINPROGRESS) &&
		    watch_set(&connection->relay->set, &connection->dial, fd, EPOLLOUT) == 0) {
			connection->server = fd;
			return;
		}
		close(fd);
	}
	give_up(connection);
}

static void dial_ready(struct watch *watch, uint32_t events)
{
	struct relay_connection *connection =
		(struct relay_connection *)((char *)watch - offsetof(struct relay_connection, dial));
	int errnum = 0;
	socklen_t length = sizeof errnum;

	(void)events;
	if (getsockopt(connection->server, SOL_SOCKET, SO_ERROR, &errnum, &length) == 0 &&
	    errnum == 0) {
		connected(connection);
		return;
	}
	watch_close(&connection->relay->set, connection->server);
	connection->server = -1;
	connection->choice++;
	dial(connection);
}

static void begin(struct relay *relay, const struct request_proxy *proxy, int client)
{
	struct relay_connection *connection = calloc(1, sizeof *connection);

	if (connection == NULL) {
		close(client);
		return;
	}
	connection->relay = relay;
	connection->proxy = proxy;
	connection->client = client;
	connection->server = -1;
	connection->dial.ready = dial_ready;
	connection->dial.retired = dial_retired;
	connection->next = relay->connections;
	connection->previous = &relay->connections;
	if (connection->next != NULL)
		connection->next->previous = &connection->next;
	relay->connections = connection;
	relay->connection_count++;
	dial(connection);
}

/* ---- gates --------------------------------------------------------------------------------------- */

static void watch_gates(struct relay *relay, uint32_t events)
{
	unsigned number;

	for (number = 0; number < relay->gate_count; number++)
		watch_set(&relay->set, &relay->gates[number].watch, relay->gates[number].listener, events);
}

/* A listener that is not served would be ready all the time. */
static void pause_accepting(struct relay *relay)
{
	relay->resume_at = clock_now() + PAUSE_NS;
	watch_gates(relay, 0);
}

static void accept_again(struct relay *relay)
{
	relay->resume_at = UINT64_MAX;
	watch_gates(relay, EPOLLIN);
}

static bool is_about_one(int errnum)
{
	return errnum == ECONNABORTED || errnum == EINTR || errnum == EPROTO || errnum == EPERM;
}

static void gate_ready(struct watch *watch, uint32_t events)
{
	struct relay_gate *gate = (struct relay_gate *)watch;
	struct relay *relay = gate->relay;
	int number, fd;

	(void)events;
	for (number = 0; number < ACCEPTED_AT_ONCE && relay->resume_at == UINT64_MAX; number++) {
		if (relay->connection_count >= relay->connections_most) {
			pause_accepting(relay);
			return;
		}
		fd = accept4(gate->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			begin(relay, gate->proxy, fd);
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			return;
		else if (!is_about_one(errno))
			pause_accepting(relay);
	}
}

/* ---- the relay ------------------------------------------------------------------------------------- */

/* As many as there can be descriptors for. */
static unsigned connections_most(void)
{
	struct rlimit files;
	rlim_t most;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return CONNECTIONS_LEAST;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_max == RLIM_INFINITY)
		return CONNECTIONS_MOST;
	most = files.rlim_max > OTHER_FILES ? (files.rlim_max - OTHER_FILES) / CONNECTION_FILES : 0;
	if (most < CONNECTIONS_LEAST)
		return CONNECTIONS_LEAST;
	return most < CONNECTIONS_MOST ? (unsigned)most : CONNECTIONS_MOST;
}

int relay_open(struct relay *relay)
{
	if (flow_set_open(&relay->set) < 0)
		return -1;
	relay->gate_count = 0;
	relay->connections = NULL;
	relay->connection_count = 0;
	relay->resume_at = UINT64_MAX;
	relay->open = true;
	relay->connections_most = connections_most();
	return 0;
}

int relay_add(struct relay *relay, int listener, const struct request_proxy *proxy)
{
	struct relay_gate *gate = &relay->gates[relay->gate_count];

	gate->watch.ready = gate_ready;
	gate->relay = relay;
	gate->proxy = proxy;
	gate->listener = listener;
	if (watch_set(&relay->set, &gate->watch, listener, EPOLLIN) < 0) {
		int errnum = errno;

		close(listener);
		errno = errnum;
		return -1;
	}
	relay->gate_count++;
	return 0;
}

int relay_descriptor(const struct relay *relay)
{
	return relay->open ? relay->set.epoll : -1;
}

uint64_t relay_due(const struct relay *relay)
{
	if (!relay->open)
		return UINT64_MAX;
	return flow_set_busy(&relay->set) ? 0 : relay->resume_at;
}

void relay_turn(struct relay *relay)
{
	if (!relay->open)
		return;
	if (clock_now() >= relay->resume_at)
		accept_again(relay);
	flow_set_turn(&relay->set, 0);
}

void relay_finish(struct relay *relay)
{
	uint64_t end = clock_now() + FINISH_NS;
	int turns;

	for (turns = 0; relay->open && turns < FINISH_TURNS && clock_now() < end; turns++)
		if (!flow_set_turn(&relay->set, 0))
			break;
	relay_close(relay);
}

static void close_gates(struct relay *relay)
{
	while (relay->gate_count > 0) {
		struct relay_gate *gate = &relay->gates[--relay->gate_count];

		watch_close(&relay->set, gate->listener);
		gate->listener = -1;
	}
}

void relay_close(struct relay *relay)
{
	struct relay_connection *connection;

	if (!relay->open)
		return;
	relay->open = false;
	close_gates(relay);
	for (connection = relay->connections; connection != NULL; connection = connection->next) {
		if (connection->client >= 0)
			give_up(connection);
		else if (connection->flow.over != NULL)
			flow_end(&connection->flow, 0);
	}
	flow_set_close(&relay->set);
}
