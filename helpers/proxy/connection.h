/*
 * Connections of clients, from accept to the last byte:
 *
 *   GREETING -> (RESOLVING ->) DIALING -> TUNNEL                        CONNECT, SOCKS5
 *                                      -> EXCHANGE -> LINGERING         http:// URLs
 *   any of these but TUNNEL -> ANSWERING -> LINGERING                   refusals and failures
 *
 * socks.c and http.c read the greeting and word the answers; dial.c and exchange.c have the
 * states of their names.
 */
#ifndef EXECSANDBOX_PROXY_CONNECTION_H
#define EXECSANDBOX_PROXY_CONNECTION_H

#include "buffer.h"
#include "flow.h"
#include "proxy.h"
#include "request.h"
#include "resolver.h"

enum connection_state {
	STATE_GREETING,  /* what it wants is still to come */
	STATE_RESOLVING, /* the name is looked up */
	STATE_DIALING,   /* the server is dialled */
	STATE_TUNNEL,    /* the flow has both sockets */
	STATE_EXCHANGE,  /* one request and its response */
	STATE_ANSWERING, /* the last bytes for the client are on their way */
	STATE_LINGERING, /* it has them all; what it still sends is dropped until it closes */
	STATE_CLOSED,
};

enum protocol { PROTOCOL_UNKNOWN, PROTOCOL_SOCKS, PROTOCOL_HTTP };

enum failure {
	FAILURE_MALFORMED,
	FAILURE_TOO_LARGE,
	FAILURE_SLOW, /* the client did not say what it wants */
	FAILURE_DENIED,
	FAILURE_UNRESOLVED,
	FAILURE_UNREACHABLE,
	FAILURE_TIMEOUT, /* of the server */
	FAILURE_RESOURCES,
};

enum {
	HANDSHAKE_SECONDS = 30,
	CONNECT_SECONDS = 30,
	ATTEMPT_SECONDS = 10, /* for one address, where another one is left */
	ANSWER_SECONDS = 10,
	LINGER_SECONDS = 2,
};

struct connection {
	struct watch client_watch; /* first */
	struct watch server_watch;
	struct proxy *proxy;
	struct connection *next; /* all of them */
	struct connection **link;
	enum connection_state state;
	enum protocol protocol;
	int client; /* -1: none, or the flow's */
	int server;
	uint64_t deadline; /* of the state; 0: none */
	bool looking_up;   /* the answer is still to come, whatever has happened since */
	bool retired;
	bool socks_greeted;
	struct buffer in;    /* from the client, not used yet */
	struct buffer up;    /* to the server */
	struct buffer down;  /* to the client */
	size_t scanned;      /* of an HTTP head in `in` */
	bool client_ended;   /* EXCHANGE */
	bool server_ended;   /* EXCHANGE */
	bool server_refuses; /* EXCHANGE: it takes nothing any more */
	bool responded;      /* EXCHANGE: some of the response is there */
	struct request *request;
	struct request_target target;
	struct addresses addresses;
	unsigned address_next;
	uint64_t connect_deadline;
	struct filter_entry *entry;
	uint64_t counted; /* TUNNEL: bytes that the report has */
	size_t reply_length;
	struct flow flow;
};

/* Takes over CLIENT, a nonblocking socket. Closes it where there is no memory. */
void connection_begin(struct proxy *proxy, int client);

/* Once in a while: ends what is overdue. */
void connection_tick(struct connection *connection, uint64_t now);

/* Brings the report up to date. */
void connection_count(struct connection *connection);

/* ---- for the files of the states -------------------------------------------------------------- */

/* `target` is known: decides, looks up, dials. */
void connection_decide(struct connection *connection);

/* The server is there. */
void connection_dialled(struct connection *connection);

/* Answers with a failure. REASON ends "host:port is refused: " or stands alone. */
void connection_fail(struct connection *connection, enum failure failure, const char *reason);

/* Sends what is in `down`, and then ends. The server, if any, is hung up. */
void connection_answer(struct connection *connection);

/* The client has everything: lets it close first, so that nothing of it is lost. */
void connection_linger(struct connection *connection);

/* Ends it at once. */
void connection_close(struct connection *connection);

/* Closes one of its sockets, if it is there; RESET tells the peer that something is missing. */
void connection_hang_up(struct connection *connection, int *fd, bool reset);

#endif
