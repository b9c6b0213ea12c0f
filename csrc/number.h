/*
 * Numbers from Lua, checked alike on every version: Lua 5.1 takes 1.5 and NaN for an
 * integer, 5.3 raises, LuaJIT does either.
 */
#ifndef EXECSANDBOX_NUMBER_H
#define EXECSANDBOX_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "compat.h"

/* The largest integer up to which every one has its own value as a double. */
#define NUMBER_MAX (UINT64_C(1) << 53)

/* Whether the value at INDEX is a number (not a string) and an integer in 0 … 2^53. */
bool number_to_u64(lua_State *L, int index, uint64_t *out);

/* Whether it is a number, finite and not negative. */
bool number_to_seconds(lua_State *L, int index, double *out);

#endif
