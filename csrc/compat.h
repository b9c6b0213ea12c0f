/*
 * One source for Lua 5.1, 5.2, 5.3, 5.4 and LuaJIT.
 *
 * The C core uses the part of the Lua API that all of them have, plus the few
 * functions below that 5.1 lacks.  Everything is static, so that nothing but
 * luaopen_* is visible in the shared object, and named as in Lua 5.2 and later.
 * Unused ones cost nothing.
 */
#ifndef EXECSANDBOX_COMPAT_H
#define EXECSANDBOX_COMPAT_H

#include <lauxlib.h>
#include <lua.h>

#include <stdint.h>

#define COMPAT_UNUSED __attribute__((unused))

#if LUA_VERSION_NUM < 502

#define lua_rawlen(L, i) lua_objlen((L), (i))

static COMPAT_UNUSED int compat_absindex(lua_State *L, int index)
{
	return index > 0 || index <= LUA_REGISTRYINDEX ? index : lua_gettop(L) + index + 1;
}
#define lua_absindex compat_absindex

/* As luaL_setfuncs of 5.2, without upvalues (nothing here uses them). */
static COMPAT_UNUSED void compat_setfuncs(lua_State *L, const luaL_Reg *functions)
{
	for (; functions->name != NULL; functions++) {
		lua_pushcfunction(L, functions->func);
		lua_setfield(L, -2, functions->name);
	}
}

/* As luaL_testudata of 5.2. */
static COMPAT_UNUSED void *compat_testudata(lua_State *L, int index, const char *name)
{
	void *data = lua_touserdata(L, index);
	if (data == NULL || !lua_getmetatable(L, index))
		return NULL;
	luaL_getmetatable(L, name);
	if (!lua_rawequal(L, -1, -2))
		data = NULL;
	lua_pop(L, 2);
	return data;
}
#define luaL_testudata compat_testudata

/* Room for at most COMPAT_ROOM bytes at once at the end of a buffer. */
#define COMPAT_ROOM LUAL_BUFFERSIZE
#define compat_prepbuffer(B, size) luaL_prepbuffer(B)
/* Nothing makes the buffer of 5.1 grow in one step. */
#define compat_reserve(B, size) ((void)(B), (void)(size))

#else

#define COMPAT_ROOM SIZE_MAX
#define compat_prepbuffer(B, size) luaL_prepbuffsize((B), (size))
#define compat_reserve(B, size) ((void)luaL_prepbuffsize((B), (size)))

#define compat_setfuncs(L, functions) luaL_setfuncs((L), (functions), 0)

#endif

/* Lua 5.4 gives every full userdata one user value unless told otherwise. */
#if LUA_VERSION_NUM >= 504
#define compat_newuserdata(L, size) lua_newuserdatauv((L), (size), 0)
#else
#define compat_newuserdata(L, size) lua_newuserdata((L), (size))
#endif

#endif
