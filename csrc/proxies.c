#include "proxies.h"

#include <arpa/inet.h>
#include <string.h>

#include "failure_lua.h"

static const uint8_t mapped_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

/* The address at the top of the stack, which is popped. */
static void read_address(lua_State *L, uint8_t out[16])
{
	const char *text = lua_tostring(L, -1);

	if (text != NULL && inet_pton(AF_INET, text, out + sizeof mapped_prefix) == 1)
		memcpy(out, mapped_prefix, sizeof mapped_prefix);
	else if (text == NULL || inet_pton(AF_INET6, text, out) != 1)
		luaL_error(L, "bad proxy in a request (an address expected)");
	lua_pop(L, 1);
}

static uint16_t read_port(lua_State *L, const char *name)
{
	lua_Number port;

	lua_getfield(L, -1, name);
	port = lua_tonumber(L, -1);
	lua_pop(L, 1);
	if (!(port >= 1 && port <= UINT16_MAX))
		luaL_error(L, "bad proxy in a request (a port expected)");
	return (uint16_t)port;
}

static void read_outside(lua_State *L, struct request_proxy *out)
{
	size_t i, count;

	lua_getfield(L, -1, "outside");
	count = lua_isnil(L, -1) ? 0 : lua_rawlen(L, -1);
	if (count > PROXY_ADDRESSES)
		luaL_error(L, "bad proxy in a request (too many addresses)");
	for (i = 0; i < count; i++) {
		lua_rawgeti(L, -1, (int)i + 1);
		read_address(L, out->outside[i]);
	}
	lua_pop(L, 1);
	out->outside_count = (uint32_t)count;
	out->kind = count > 0 ? PROXY_RELAY : PROXY_FILTER;
	if (count > 0)
		out->outside_port = read_port(L, "outside_port");
}

static void read_proxy(lua_State *L, struct request_proxy *out)
{
	luaL_checktype(L, -1, LUA_TTABLE);
	lua_getfield(L, -1, "inside");
	read_address(L, out->inside);
	out->inside_port = read_port(L, "inside_port");
	lua_getfield(L, -1, "optional");
	out->flags = lua_toboolean(L, -1) ? PROXY_OPTIONAL : 0;
	lua_pop(L, 1);
	read_outside(L, out);
}

void proxies_read(lua_State *L, struct arena *arena, struct proxies *out)
{
	size_t i, count = lua_isnil(L, -1) ? 0 : lua_rawlen(L, -1);

	if (count > PROXIES_MOST)
		luaL_error(L, "bad proxies in a request (too many)");
	out->items = arena_alloc(arena, (count + 1) * sizeof *out->items);
	if (out->items == NULL)
		raise_memory(L);
	for (i = 0; i < count; i++) {
		lua_rawgeti(L, -1, (int)i + 1);
		read_proxy(L, &out->items[i]);
		lua_pop(L, 1);
	}
	out->count = count;
	lua_pop(L, 1);
}
