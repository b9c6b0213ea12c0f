/* SOCKS5 (RFC 1928): no authentication, CONNECT only. */
#ifndef EXECSANDBOX_PROXY_SOCKS_H
#define EXECSANDBOX_PROXY_SOCKS_H

#include "connection.h"

/* Reads on in what has come from the client. */
void socks_read(struct connection *connection);

/* The answer: 0, or the code of a failure. */
void socks_answer(struct connection *connection, struct buffer *out, int code);

int socks_code(enum failure failure);

#endif
