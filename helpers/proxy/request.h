/*
 * A request to an HTTP proxy: its head, which is made anew for the server, and its body, which is
 * framed anew as it passes.  llhttp parses both; nothing reaches the server that was not
 * understood here.  `Upgrade` is between client and proxy and goes no further: the server
 * answers in plain HTTP, and what wants another protocol (a WebSocket) comes by CONNECT.
 */
#ifndef EXECSANDBOX_PROXY_REQUEST_H
#define EXECSANDBOX_PROXY_REQUEST_H

#include "buffer.h"
#include "host_pattern.h"

enum { HEAD_MOST = 64 * 1024 };

enum head_state { HEAD_INCOMPLETE, HEAD_COMPLETE, HEAD_WRONG };

/*
 * Whether the LENGTH bytes at BYTES hold a whole head, *SCANNED of which were looked at before
 * (0 at first).  Only line ends of CR LF are taken, no continued line and no NUL, so that every
 * reader sees the same lines.  *SCANNED becomes the length of a complete head.
 */
enum head_state head_scan(const unsigned char *bytes, size_t length, size_t *scanned);

struct request;

enum request_kind { REQUEST_CONNECT, REQUEST_FORWARD };

struct request_target {
	enum request_kind kind;
	struct host host;
	uint16_t port;
	bool head_only; /* the answer has no body: HEAD */
};

/*
 * Parses the complete head of LENGTH bytes.  Returns the request and fills TARGET, and, for
 * REQUEST_FORWARD, puts the head for the server into OUT.  NULL where it is refused: *WRONG says
 * why, and *STATUS is the answer's.
 */
struct request *request_parse(const unsigned char *head, size_t length,
                              struct request_target *target, struct buffer *out, int *status,
                              const char **wrong);

/* Whether the whole body has been taken. */
bool request_is_complete(const struct request *request);

/*
 * Takes LENGTH bytes of the body, and puts what the server gets into OUT.  Bytes behind the
 * body's end are dropped.  False where they are no body (or memory is exhausted).
 */
bool request_feed(struct request *request, const unsigned char *bytes, size_t length,
                  struct buffer *out);

void request_free(struct request *request);

#endif
