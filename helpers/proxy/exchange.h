/*
 * One HTTP request to a server, and its response: the body is framed anew as it passes, the
 * response is passed on as it is, until the server closes.  Nothing that a client sends behind
 * its request gets to the server.
 */
#ifndef EXECSANDBOX_PROXY_EXCHANGE_H
#define EXECSANDBOX_PROXY_EXCHANGE_H

#include "connection.h"

void exchange_begin(struct connection *connection);

void exchange_client_ready(struct connection *connection, uint32_t events);
void exchange_server_ready(struct connection *connection, uint32_t events);

#endif
