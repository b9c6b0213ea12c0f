/* HTTP/1.x as clients speak it to a proxy. */
#ifndef EXECSANDBOX_PROXY_HTTP_H
#define EXECSANDBOX_PROXY_HTTP_H

#include "connection.h"

/* Reads on in what has come from the client. */
void http_read(struct connection *connection);

/* The answer to a failed request, whole. */
void http_answer(struct connection *connection, enum failure failure, const char *reason);

/* The answer to CONNECT. */
extern const char http_established[];

#endif
