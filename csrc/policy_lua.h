/* Policies as Lua sees them: sandbox.policy and the methods of what it returns. */
#ifndef EXECSANDBOX_POLICY_LUA_H
#define EXECSANDBOX_POLICY_LUA_H

#include "compat.h"
#include "policy.h"

#define POLICY_METATABLE "execsandbox.Policy"

/* Creates the metatables of policies, resolutions and errors; when the module is opened. */
void policy_register(lua_State *L);

/* Lua: policy(spec) → Policy, or nil, err */
int policy_new(lua_State *L);

/* The policy at INDEX; raises where there is none. */
struct policy *policy_check(lua_State *L, int index);

#endif
