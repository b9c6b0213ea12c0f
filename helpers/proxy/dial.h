/* Dialling a server: its addresses in turn, each of which was checked before. */
#ifndef EXECSANDBOX_PROXY_DIAL_H
#define EXECSANDBOX_PROXY_DIAL_H

#include "connection.h"

void dial_begin(struct connection *connection);

/* The socket being dialled has something to say. */
void dial_ready(struct connection *connection);

/* It took too long. */
void dial_overdue(struct connection *connection);

#endif
