/* Finished resolutions as Lua sees them: what policy:access and its like ask. */
#ifndef EXECSANDBOX_RESOLUTION_LUA_H
#define EXECSANDBOX_RESOLUTION_LUA_H

#include "compat.h"
#include "policy.h"

void resolution_register(lua_State *L);

/*
 * Resolves POLICY for the options { cwd =, env = } at INDEX (nil or none: the host's)
 * and pushes the Resolution; or pushes nil and an error and returns false.
 */
bool resolution_push(lua_State *L, const struct policy *policy, int index, const char *function);

/* The same methods, for the Resolution at INDEX and the path at PATH; return what they push. */
int resolution_access(lua_State *L, int index, int path);
int resolution_explain(lua_State *L, int index, int path);
int resolution_rules(lua_State *L, int index);

/* Releases the Resolution at INDEX at once, rather than when it is collected. */
void resolution_release(lua_State *L, int index);

#endif
