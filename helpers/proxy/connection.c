#include "connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "clock.h"
#include "dial.h"
#include "exchange.h"
#include "http.h"
#include "socks.h"

enum { READ_SIZE = 4096 };

static uint64_t after(unsigned seconds)
{
	return clock_now() + (uint64_t)seconds * NS_PER_SECOND;
}

/* ---- ending ------------------------------------------------------------------------------------- */

static void release(struct connection *connection)
{
	struct proxy *proxy = connection->proxy;

	*connection->link = connection->next;
	if (connection->next != NULL)
		connection->next->link = connection->link;
	proxy->connection_count--;
	buffer_free(&connection->in);
	buffer_free(&connection->up);
	buffer_free(&connection->down);
	request_free(connection->request);
	free(connection);
}

/* No event means it any more; an answer of the resolver still may. */
static void retired(struct watch *watch)
{
	struct connection *connection = (struct connection *)watch;

	connection->retired = true;
	if (!connection->looking_up)
		release(connection);
}

void connection_hang_up(struct connection *connection, int *fd, bool reset)
{
	const struct linger none = { .l_onoff = 1, .l_linger = 0 };

	if (*fd < 0)
		return;
	if (reset)
		setsockopt(*fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
	watch_close(&connection->proxy->set, *fd);
	*fd = -1;
}

void connection_close(struct connection *connection)
{
	if (connection->state == STATE_CLOSED)
		return;
	connection->state = STATE_CLOSED;
	connection->deadline = 0;
	connection_hang_up(connection, &connection->server, false);
	connection_hang_up(connection, &connection->client, false);
	connection->server_watch.ready = NULL;
	watch_retire(&connection->proxy->set, &connection->client_watch);
}

/* A close while something unread is there would be a reset, and could undo the answer. */
void connection_linger(struct connection *connection)
{
	connection->state = STATE_LINGERING;
	connection->deadline = after(LINGER_SECONDS);
	shutdown(connection->client, SHUT_WR);
	if (watch_set(&connection->proxy->set, &connection->client_watch, connection->client,
	              EPOLLIN) != 0)
		connection_close(connection);
}

static void drop_input(struct connection *connection)
{
	struct proxy *proxy = connection->proxy;
	ssize_t length = recv(connection->client, proxy->scratch, sizeof proxy->scratch, MSG_DONTWAIT);

	if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR))
		connection_close(connection);
}

/* ---- answers ------------------------------------------------------------------------------------ */

static void send_answer(struct connection *connection)
{
	struct buffer *down = &connection->down;
	ssize_t length =
		send(connection->client, buffer_head(down), down->length, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (length < 0 && errno != EAGAIN && errno != EINTR) {
		connection_close(connection);
		return;
	}
	if (length > 0)
		buffer_take(down, (size_t)length);
	if (down->length == 0)
		connection_linger(connection);
}

void connection_answer(struct connection *connection)
{
	connection_hang_up(connection, &connection->server, false);
	buffer_free(&connection->in);
	buffer_free(&connection->up);
	connection->state = STATE_ANSWERING;
	connection->deadline = after(ANSWER_SECONDS);
	if (watch_set(&connection->proxy->set, &connection->client_watch, connection->client,
	              EPOLLOUT) != 0)
		connection_close(connection);
	else
		send_answer(connection);
}

void connection_fail(struct connection *connection, enum failure failure, const char *reason)
{
	buffer_free(&connection->down);
	if (connection->protocol == PROTOCOL_SOCKS)
		socks_answer(connection, &connection->down, socks_code(failure));
	else
		http_answer(connection, failure, reason);
	if (connection->state != STATE_CLOSED)
		connection_answer(connection);
}

/* ---- deciding ----------------------------------------------------------------------------------- */

static void count(struct connection *connection, enum filter_verdict verdict)
{
	connection->entry = report_count(connection->proxy->report, verdict,
	                                 connection->target.host.text, connection->target.port);
}

static void deny(struct connection *connection, const char *reason)
{
	count(connection, FILTER_DENIED);
	connection_fail(connection, FAILURE_DENIED, reason);
}

/* All addresses must be fine: which one is dialled is no one's choice but the network's. */
static bool may_reach(const struct connection *connection, char reason[REASON_SIZE])
{
	for (unsigned i = 0; i < connection->addresses.count; i++)
		if (!rules_allow_address(&connection->proxy->config.rules, &connection->addresses.list[i],
		                         connection->target.port, reason))
			return false;
	return true;
}

static void resolved(void *context, const struct addresses *addresses, const char *wrong)
{
	struct connection *connection = context;
	char reason[REASON_SIZE];

	connection->looking_up = false;
	if (connection->retired) {
		release(connection);
		return;
	}
	if (connection->state != STATE_RESOLVING)
		return;
	if (wrong != NULL) {
		count(connection, FILTER_ALLOWED);
		connection_fail(connection, FAILURE_UNRESOLVED, wrong);
		return;
	}
	connection->addresses = *addresses;
	if (!may_reach(connection, reason)) {
		deny(connection, reason);
		return;
	}
	count(connection, FILTER_ALLOWED);
	dial_begin(connection);
}

void connection_decide(struct connection *connection)
{
	struct proxy *proxy = connection->proxy;
	const struct host *host = &connection->target.host;
	char reason[REASON_SIZE];

	if (!rules_allow_host(&proxy->config.rules, host, connection->target.port, reason)) {
		deny(connection, reason);
		return;
	}
	/* Nothing more is read until the server is there; only that the client is gone is told. */
	if (watch_set(&proxy->set, &connection->client_watch, connection->client, 0) != 0) {
		connection_close(connection);
		return;
	}
	if (host->is_address) {
		connection->addresses = (struct addresses){ { host->address }, 1 };
		count(connection, FILTER_ALLOWED);
		dial_begin(connection);
		return;
	}
	connection->state = STATE_RESOLVING;
	connection->deadline = after(CONNECT_SECONDS);
	connection->looking_up = true;
	resolver_lookup(proxy->resolver, host->text, resolved, connection);
}

/* ---- tunnels -------------------------------------------------------------------------------------- */

void connection_count(struct connection *connection)
{
	const struct flow_way *ways = connection->flow.ways;
	uint64_t total;

	if (connection->state != STATE_TUNNEL)
		return;
	/* The answer of this proxy's own went through the flow, too. */
	total = ways[1].bytes > connection->reply_length ? ways[1].bytes - connection->reply_length : 0;
	total += ways[0].bytes;
	report_add(connection->entry, total - connection->counted);
	connection->counted = total;
}

static void tunnel_over(struct flow *flow, int errnum)
{
	struct connection *connection = flow->context;

	(void)errnum;
	connection_count(connection);
	release(connection);
}

static void begin_tunnel(struct connection *connection)
{
	struct buffer *reply = &connection->down;
	struct buffer *early = &connection->in;
	struct flow *flow = &connection->flow;
	int client = connection->client, server = connection->server;

	if (connection->protocol == PROTOCOL_SOCKS)
		socks_answer(connection, reply, 0);
	else if (!buffer_add(reply, http_established, strlen(http_established)))
		connection_close(connection);
	if (connection->state == STATE_CLOSED)
		return;
	connection->client = connection->server = -1;
	flow->over = tunnel_over;
	flow->context = connection;
	if (flow_begin(&connection->proxy->set, flow, client, server) != 0) {
		connection_close(connection);
		return;
	}
	connection->state = STATE_TUNNEL;
	connection->reply_length = reply->length;
	if (flow_push(flow, 1, buffer_head(reply), reply->length) != 0 ||
	    flow_push(flow, 0, buffer_head(early), early->length) != 0)
		flow_end(flow, ENOMEM);
	buffer_free(reply);
	buffer_free(early);
}

void connection_dialled(struct connection *connection)
{
	if (connection->target.kind == REQUEST_CONNECT)
		begin_tunnel(connection);
	else
		exchange_begin(connection);
}

/* ---- events ------------------------------------------------------------------------------------- */

static void read_greeting(struct connection *connection)
{
	struct buffer *in = &connection->in;
	unsigned char *room = buffer_room(in, READ_SIZE);
	ssize_t length;

	if (room == NULL) {
		connection_close(connection);
		return;
	}
	length = recv(connection->client, room, READ_SIZE, MSG_DONTWAIT);
	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (length <= 0) {
		connection_close(connection);
		return;
	}
	in->length += (size_t)length;
	if (connection->protocol == PROTOCOL_UNKNOWN)
		connection->protocol = *buffer_head(in) == 5 ? PROTOCOL_SOCKS : PROTOCOL_HTTP;
	if (connection->protocol == PROTOCOL_SOCKS)
		socks_read(connection);
	else
		http_read(connection);
}

static void client_ready(struct watch *watch, uint32_t events)
{
	struct connection *connection = (struct connection *)watch;

	switch (connection->state) {
	case STATE_GREETING:
		read_greeting(connection);
		break;
	case STATE_RESOLVING:
	case STATE_DIALING:
		if ((events & (EPOLLERR | EPOLLHUP)) != 0)
			connection_close(connection);
		break;
	case STATE_EXCHANGE:
		exchange_client_ready(connection, events);
		break;
	case STATE_ANSWERING:
		send_answer(connection);
		break;
	case STATE_LINGERING:
		drop_input(connection);
		break;
	case STATE_TUNNEL:
	case STATE_CLOSED:
		break;
	}
}

static void server_ready(struct watch *watch, uint32_t events)
{
	struct connection *connection =
		(struct connection *)((char *)watch - offsetof(struct connection, server_watch));

	/* An event of a socket that was closed meanwhile. */
	if (connection->server < 0)
		return;
	if (connection->state == STATE_DIALING)
		dial_ready(connection);
	else if (connection->state == STATE_EXCHANGE)
		exchange_server_ready(connection, events);
}

void connection_tick(struct connection *connection, uint64_t now)
{
	if (connection->deadline == 0 || now < connection->deadline)
		return;
	switch (connection->state) {
	case STATE_GREETING:
		if (connection->protocol == PROTOCOL_HTTP)
			connection_fail(connection, FAILURE_SLOW, "its head did not come in time");
		else
			connection_close(connection);
		break;
	case STATE_RESOLVING:
		count(connection, FILTER_ALLOWED);
		connection_fail(connection, FAILURE_UNRESOLVED, "the name servers did not answer");
		break;
	case STATE_DIALING:
		dial_overdue(connection);
		break;
	default:
		connection_close(connection);
		break;
	}
}

void connection_begin(struct proxy *proxy, int client)
{
	struct connection *connection = calloc(1, sizeof *connection);

	if (connection == NULL ||
	    watch_set(&proxy->set, &connection->client_watch, client, EPOLLIN) != 0) {
		free(connection);
		watch_close(&proxy->set, client);
		return;
	}
	connection->client_watch.ready = client_ready;
	connection->client_watch.retired = retired;
	connection->server_watch.ready = server_ready;
	connection->proxy = proxy;
	connection->client = client;
	connection->server = -1;
	connection->deadline = after(HANDSHAKE_SECONDS);
	connection->link = &proxy->connections;
	connection->next = proxy->connections;
	if (connection->next != NULL)
		connection->next->link = &connection->next;
	proxy->connections = connection;
	proxy->connection_count++;
}
