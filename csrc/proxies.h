/* The proxies of a request, as the Lua layer found them (lua/execsandbox/proxies.lua). */
#ifndef EXECSANDBOX_PROXIES_H
#define EXECSANDBOX_PROXIES_H

#include <stddef.h>

#include "arena.h"
#include "compat.h"
#include "request.h"

struct proxies {
	struct request_proxy *items; /* the arena's */
	size_t count;
};

/*
 * Reads the list at the top of the stack (nil: none), and pops it.  Each item:
 *   inside = loopback address, inside_port = number, optional = boolean or nil,
 *   outside = { one or two loopback addresses }, outside_port = number; without these two it is
 *   for the filtering proxy
 * Raises for what such an item must not be.
 */
void proxies_read(lua_State *L, struct arena *arena, struct proxies *out);

#endif
