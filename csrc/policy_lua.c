#include "policy_lua.h"

#include <string.h>

#include "failure_lua.h"
#include "policy_parts.h"
#include "resolution_lua.h"

struct policy *policy_check(lua_State *L, int index)
{
	return luaL_checkudata(L, index, POLICY_METATABLE);
}

/* The userdata owns the arena before anything goes into it: whatever raises leaks nothing. */
static struct policy *push_empty(lua_State *L)
{
	struct policy *policy = compat_newuserdata(L, sizeof *policy);

	memset(policy, 0, sizeof *policy);
	policy_set_defaults(policy);
	luaL_getmetatable(L, POLICY_METATABLE);
	lua_setmetatable(L, -2);
	return policy;
}

int policy_new(lua_State *L)
{
	struct failure failure;
	struct policy *policy;

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	policy = push_empty(L);
	if (policy_parse(L, 1, "policy", policy, &failure) != 0)
		return push_failure(L, &failure);
	lua_settop(L, 2);
	return 1;
}

/* ---- methods ------------------------------------------------------------------------------ */

typedef int question(lua_State *L, int index, int path);

/* policy:access(path [, options]) and policy:explain(path [, options]) */
static int answer(lua_State *L, const char *function, question *ask)
{
	const struct policy *policy = policy_check(L, 1);
	int count;

	luaL_checktype(L, 2, LUA_TSTRING);
	lua_settop(L, 3);
	if (!resolution_push(L, policy, 3, function))
		return 2;
	count = ask(L, 4, 2);
	resolution_release(L, 4);
	return count;
}

static int access_method(lua_State *L)
{
	return answer(L, "access", resolution_access);
}

static int explain_method(lua_State *L)
{
	return answer(L, "explain", resolution_explain);
}

/* policy:rules([options]) → the resolved rules, broadest first */
static int rules_method(lua_State *L)
{
	const struct policy *policy = policy_check(L, 1);

	lua_settop(L, 2);
	if (!resolution_push(L, policy, 2, "rules"))
		return 2;
	resolution_rules(L, 3);
	resolution_release(L, 3);
	return 1;
}

/* policy:resolve([options]) → a Resolution, for many questions about one moment */
static int resolve_method(lua_State *L)
{
	const struct policy *policy = policy_check(L, 1);

	lua_settop(L, 2);
	return resolution_push(L, policy, 2, "resolve") ? 1 : 2;
}

/* policy:spec() → a table that policy() accepts */
static int spec_method(lua_State *L)
{
	policy_push_spec(L, policy_check(L, 1));
	return 1;
}

/*
 * policy:extend(spec) → a new policy: rules, workspace_roots and devices of SPEC are
 * added to this one's, limits replace by name, every other field replaces.
 */
static int extend_method(lua_State *L)
{
	const struct policy *policy = policy_check(L, 1);
	struct failure failure;
	struct policy *extended;

	luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 2);
	extended = push_empty(L);
	if (policy_copy(extended, policy) != 0)
		raise_memory(L);
	if (policy_parse(L, 2, "extend", extended, &failure) != 0)
		return push_failure(L, &failure);
	lua_settop(L, 3);
	return 1;
}

/* ---- metamethods ---------------------------------------------------------------------------- */

static int collect(lua_State *L)
{
	struct policy *policy = lua_touserdata(L, 1);

	arena_release(&policy->arena);
	memset(policy, 0, sizeof *policy);
	return 0;
}

static int to_string(lua_State *L)
{
	const struct policy *policy = policy_check(L, 1);

	lua_pushfstring(L, "Policy: %s, network %s, %d rule%s",
	                policy_filesystem_words[policy->filesystem],
	                policy_network_words[policy->network], (int)policy->rule_count,
	                policy->rule_count == 1 ? "" : "s");
	return 1;
}

/* Lua 5.1 and 5.2 call this for two userdata only, later ones also for one and something else. */
static int equal(lua_State *L)
{
	const struct policy *a = luaL_testudata(L, 1, POLICY_METATABLE);
	const struct policy *b = luaL_testudata(L, 2, POLICY_METATABLE);
	int same = a == NULL || b == NULL ? 0 : policy_equal(a, b);

	if (same < 0)
		raise_memory(L);
	lua_pushboolean(L, same);
	return 1;
}

static const luaL_Reg methods[] = {
	{ "access", access_method },
	{ "explain", explain_method },
	{ "rules", rules_method },
	{ "resolve", resolve_method },
	{ "spec", spec_method },
	{ "extend", extend_method },
	{ NULL, NULL },
};

static const luaL_Reg metamethods[] = {
	{ "__gc", collect },
	{ "__tostring", to_string },
	{ "__eq", equal },
	{ NULL, NULL },
};

void policy_register(lua_State *L)
{
	failure_register(L);
	resolution_register(L);
	/* Filled in any case: what failed half-way for want of memory may be tried again. */
	luaL_newmetatable(L, POLICY_METATABLE);
	compat_setfuncs(L, metamethods);
	lua_newtable(L);
	compat_setfuncs(L, methods);
	lua_setfield(L, -2, "__index");
	lua_pushliteral(L, POLICY_METATABLE);
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 1);
}
