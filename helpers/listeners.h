/* The ways out of the sandbox's network namespace, made inside it by the inner stage. */
#ifndef EXECSANDBOX_LISTENERS_H
#define EXECSANDBOX_LISTENERS_H

#include <stddef.h>

#include "request_view.h"

/*
 * Listens for all of the request's proxies and sends the sockets through CONTROL, in one
 * MESSAGE_LISTENERS; none stays open here.  Returns 0, or -1 with errno and TEXT, the
 * address that could not be had.
 */
int listeners_hand_out(const struct request_view *view, int control, char *text, size_t size);

#endif
