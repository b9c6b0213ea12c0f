/* Failures as Lua sees them. */
#ifndef EXECSANDBOX_FAILURE_LUA_H
#define EXECSANDBOX_FAILURE_LUA_H

#include "compat.h"
#include "failure.h"

#define FAILURE_METATABLE "execsandbox.error"

/* Creates the metatable; once, when the module is opened. */
void failure_register(lua_State *L);

/* Pushes the error table for FAILURE. Raises for FAILURE_MEMORY. */
void push_failure_table(lua_State *L, const struct failure *failure);

/* Raises what Lua itself raises without memory: the text alone, without a position. */
_Noreturn void raise_memory(lua_State *L);

/* Lua: error(fields) → the same table, as an error of this library. */
int failure_new(lua_State *L);

/* Pushes nil and the error table, for `return push_failure(L, &failure)`. */
int push_failure(lua_State *L, const struct failure *failure);

#endif
