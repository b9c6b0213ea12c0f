#include "exchange.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
	PIECE = 16 * 1024, /* of a body, framed anew at a time */
	STEPS = 16,        /* before others get their turn */
};

static bool would_wait(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* Where nothing of the response is there yet, the client can still be told. */
static void abandon(struct connection *connection, enum failure failure, const char *reason)
{
	connection_hang_up(connection, &connection->server, true);
	if (connection->responded) {
		connection_hang_up(connection, &connection->client, true);
		connection_close(connection);
	} else {
		connection_fail(connection, failure, reason);
	}
}

/* The server takes nothing more; it may have answered before it read everything. */
static void stop_sending(struct connection *connection)
{
	connection->server_refuses = true;
	buffer_free(&connection->up);
}

/* ---- client to server. Each returns whether something moved. ------------------------------------- */

static bool feed(struct connection *connection, const unsigned char *bytes, size_t length)
{
	if (request_feed(connection->request, bytes, length, &connection->up))
		return true;
	abandon(connection, FAILURE_MALFORMED, "its body is malformed");
	return false;
}

static bool take_request(struct connection *connection)
{
	unsigned char *piece = connection->proxy->scratch;
	ssize_t length;

	if (request_is_complete(connection->request) || connection->server_refuses ||
	    connection->up.length > 0)
		return false;
	length = recv(connection->client, piece, PIECE, MSG_DONTWAIT);
	if (length > 0)
		return feed(connection, piece, (size_t)length);
	if (length < 0 && would_wait())
		return false;
	/* It went away in the middle: the server must not take the half for the whole. */
	connection_hang_up(connection, &connection->server, true);
	connection_close(connection);
	return false;
}

static bool give_request(struct connection *connection)
{
	struct buffer *up = &connection->up;
	ssize_t length;

	if (up->length == 0)
		return false;
	length = send(connection->server, buffer_head(up), up->length, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (length > 0) {
		report_add(connection->entry, (uint64_t)length);
		buffer_take(up, (size_t)length);
		return true;
	}
	if (!would_wait())
		stop_sending(connection);
	return false;
}

/* The client's end of file comes to the server behind the whole request, as without a proxy. */
static void pass_on_end(struct connection *connection)
{
	if (!connection->client_ended || connection->up.length > 0 ||
	    !request_is_complete(connection->request))
		return;
	connection->client_ended = false;
	shutdown(connection->server, SHUT_WR);
}

/* ---- server to client ------------------------------------------------------------------------------ */

static void client_is_gone(struct connection *connection)
{
	connection_hang_up(connection, &connection->server, true);
	connection_close(connection);
}

/* True where all of it was taken. */
static bool give(struct connection *connection, const unsigned char *bytes, size_t length,
                 size_t *taken)
{
	ssize_t sent = send(connection->client, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);

	*taken = sent > 0 ? (size_t)sent : 0;
	report_add(connection->entry, *taken);
	if (sent < 0 && !would_wait())
		client_is_gone(connection);
	return *taken == length;
}

static bool take_response(struct connection *connection)
{
	unsigned char *piece = connection->proxy->scratch;
	ssize_t length;
	size_t taken;

	if (connection->server_ended || connection->down.length > 0)
		return false;
	length = recv(connection->server, piece, SCRATCH_SIZE, MSG_DONTWAIT);
	if (length < 0 && would_wait())
		return false;
	if (length < 0 || (length == 0 && !connection->responded)) {
		abandon(connection, FAILURE_UNREACHABLE, "it closed the connection without an answer");
		return false;
	}
	if (length == 0) {
		connection->server_ended = true;
		return true;
	}
	connection->responded = true;
	if (!give(connection, piece, (size_t)length, &taken) && connection->state == STATE_EXCHANGE &&
	    !buffer_add(&connection->down, piece + taken, (size_t)length - taken))
		client_is_gone(connection);
	return true;
}

static bool give_response(struct connection *connection)
{
	struct buffer *down = &connection->down;
	size_t taken;

	if (down->length == 0)
		return false;
	give(connection, buffer_head(down), down->length, &taken);
	if (connection->state != STATE_EXCHANGE)
		return false;
	buffer_take(down, taken);
	return taken > 0;
}

/* ---- turns ------------------------------------------------------------------------------------------- */

static bool step(struct connection *connection)
{
	static bool (*const moves[])(struct connection *) = { take_request, give_request, take_response,
		                                                  give_response };
	bool moved = false;

	for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
		moved |= moves[i](connection);
		if (connection->state != STATE_EXCHANGE)
			return false;
	}
	return moved;
}

/* Edges tell of what is new only: setting a watch again tells of what is there. */
static bool set_watches(struct connection *connection)
{
	struct flow_set *set = &connection->proxy->set;
	const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

	return watch_set(set, &connection->client_watch, connection->client, events) == 0 &&
	       watch_set(set, &connection->server_watch, connection->server, events) == 0;
}

static void pump(struct connection *connection)
{
	unsigned steps = 0;

	while (steps < STEPS && step(connection))
		steps++;
	if (connection->state != STATE_EXCHANGE)
		return;
	pass_on_end(connection);
	if (connection->server_ended && connection->down.length == 0) {
		connection_hang_up(connection, &connection->server, false);
		connection_linger(connection);
	} else if (steps == STEPS && !set_watches(connection)) {
		connection_close(connection);
	}
}

void exchange_begin(struct connection *connection)
{
	struct buffer body = connection->in;

	connection->state = STATE_EXCHANGE;
	connection->in = (struct buffer){ NULL, 0, 0, 0 };
	if (body.length == 0 || feed(connection, buffer_head(&body), body.length)) {
		if (set_watches(connection))
			pump(connection);
		else
			connection_fail(connection, FAILURE_RESOURCES, "too many connections");
	}
	buffer_free(&body);
}

void exchange_client_ready(struct connection *connection, uint32_t events)
{
	if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
		client_is_gone(connection);
		return;
	}
	if ((events & EPOLLRDHUP) != 0)
		connection->client_ended = true;
	pump(connection);
}

void exchange_server_ready(struct connection *connection, uint32_t events)
{
	(void)events; /* the calls tell */
	pump(connection);
}
