#include "failure_lua.h"

static const char *const kinds[] = {
	[FAILURE_POLICY] = "policy",
	[FAILURE_UNAVAILABLE] = "unavailable",
	[FAILURE_EXECUTION] = "execution",
};

/* The message, and the remedy after it: what `assert` and `print` show. */
static int to_string(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	lua_pushliteral(L, "message");
	lua_rawget(L, 1);
	if (lua_type(L, 2) != LUA_TSTRING) {
		lua_pushliteral(L, "unknown error");
		return 1;
	}
	lua_pushliteral(L, "remedy");
	lua_rawget(L, 1);
	if (lua_type(L, 3) == LUA_TSTRING) {
		lua_pushliteral(L, "; ");
		lua_insert(L, 3);
		lua_concat(L, 3);
	} else {
		lua_settop(L, 2);
	}
	return 1;
}

void failure_register(lua_State *L)
{
	/* Filled in any case: what failed half-way for want of memory may be tried again. */
	luaL_newmetatable(L, FAILURE_METATABLE);
	lua_pushcfunction(L, to_string);
	lua_setfield(L, -2, "__tostring");
	lua_pushliteral(L, FAILURE_METATABLE);
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 1);
}

static void set_text(lua_State *L, const char *name, const char *text)
{
	if (*text == '\0')
		return;
	lua_pushstring(L, text);
	lua_setfield(L, -2, name);
}

void raise_memory(lua_State *L)
{
	lua_pushliteral(L, "not enough memory"); /* exists always: Lua keeps it for itself */
	lua_error(L);
	__builtin_unreachable();
}

void push_failure_table(lua_State *L, const struct failure *failure)
{
	if (failure->kind == FAILURE_MEMORY)
		raise_memory(L);
	lua_createtable(L, 0, 6);
	set_text(L, "kind", kinds[failure->kind]);
	set_text(L, "message", failure->message);
	set_text(L, "capability", failure->capability);
	set_text(L, "stage", failure->stage);
	set_text(L, "remedy", failure->remedy);
	if (failure->errnum != 0) {
		lua_pushinteger(L, failure->errnum);
		lua_setfield(L, -2, "errno");
	}
	luaL_getmetatable(L, FAILURE_METATABLE);
	lua_setmetatable(L, -2);
}

int failure_new(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	luaL_getmetatable(L, FAILURE_METATABLE);
	lua_setmetatable(L, 1);
	return 1;
}

int push_failure(lua_State *L, const struct failure *failure)
{
	lua_pushnil(L);
	push_failure_table(L, failure);
	return 2;
}
