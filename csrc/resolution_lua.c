#include "resolution_lua.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failure_lua.h"
#include "option.h"
#include "policy_parts.h"
#include "resolve.h"

#define RESOLUTION_METATABLE "execsandbox.Resolution"

struct resolution {
	struct resolved resolved;
	struct arena scratch; /* of the question being answered */
	bool released;
	char cwd[PATH_MAX];
};

static const char *const origin_words[] = {
	[ORIGIN_RULE] = "rule",
	[ORIGIN_SPECIAL] = "special",
	[ORIGIN_GLOB] = "glob",
	[ORIGIN_PROTECTED] = "protected",
	[ORIGIN_PRIVATE_TMP] = "private_tmp",
	[ORIGIN_PRIVATE_HOME] = "private_home",
	[ORIGIN_PRIVATE_RUNTIME] = "private_runtime",
	[ORIGIN_DEV] = "dev",
	[ORIGIN_PROC] = "proc",
	[ORIGIN_SOCKET] = "socket",
	[ORIGIN_DEVICE] = "device",
	[ORIGIN_FILESYSTEM] = "filesystem",
};

/* ---- the userdata ---------------------------------------------------------------------- */

static int collect(lua_State *L)
{
	resolution_release(L, 1);
	return 0;
}

void resolution_release(lua_State *L, int index)
{
	struct resolution *resolution = lua_touserdata(L, index);

	resolution->released = true;
	arena_release(&resolution->scratch);
	resolved_release(&resolution->resolved);
}

static struct resolution *check(lua_State *L, int index)
{
	struct resolution *resolution = luaL_checkudata(L, index, RESOLUTION_METATABLE);

	if (resolution->released)
		luaL_error(L, "this resolution has been released");
	return resolution;
}

/* ---- making one -------------------------------------------------------------------------- */

static int bad_cwd(struct failure *failure, const char *cwd, const char *why)
{
	return failure_policy(failure, "The working directory '%.200s' %s.", cwd, why);
}

/* The cwd of the options, or the process's. 0 or -1 with FAILURE. */
static int read_cwd(const struct options *options, char *cwd, struct failure *failure)
{
	lua_State *L = options->L;
	const char *text;
	size_t length;

	if (options->index == 0 || !option_push_type(options, "cwd", LUA_TSTRING)) {
		if (getcwd(cwd, PATH_MAX) != NULL && *cwd == '/')
			return 0;
		return failure_policy(failure, "The host's working directory cannot be determined: %s.",
		                      strerror(errno));
	}
	text = lua_tolstring(L, -1, &length);
	if (strlen(text) != length)
		return bad_cwd(failure, text, "contains a NUL byte");
	if (*text != '/')
		return bad_cwd(failure, text, "is not an absolute path");
	if (length >= PATH_MAX)
		return bad_cwd(failure, text, "is too long");
	memcpy(cwd, text, length + 1);
	lua_pop(L, 1);
	return 0;
}

/*
 * The variable NAME of the command: what `env` says (false: not set), else the host's.
 * A string of `env` stays on the stack, so that it lives as long as it is needed.
 */
static const char *read_variable(const struct options *env, const char *name)
{
	const char *text;
	size_t length;

	if (env->index == 0 || !option_push(env, name))
		return getenv(name);
	if (lua_type(env->L, -1) == LUA_TBOOLEAN && !lua_toboolean(env->L, -1))
		return NULL;
	if (lua_type(env->L, -1) != LUA_TSTRING)
		option_type_error(env, name, "string or false", -1);
	text = lua_tolstring(env->L, -1, &length);
	return strlen(text) == length ? text : NULL;
}

static struct resolution *push_empty(lua_State *L)
{
	struct resolution *resolution = compat_newuserdata(L, sizeof *resolution);

	memset(resolution, 0, sizeof *resolution);
	luaL_getmetatable(L, RESOLUTION_METATABLE);
	lua_setmetatable(L, -2);
	return resolution;
}

bool resolution_push(lua_State *L, const struct policy *policy, int index, const char *function)
{
	static const char *const names[] = { "cwd", "env", NULL };
	struct options options = { L, 0, function, "" }, env = { L, 0, function, "env." };
	struct resolve_context context = { .cwd = NULL };
	struct resolution *resolution;
	struct failure failure;
	int result;

	luaL_checkstack(L, 16, function);
	if (!lua_isnoneornil(L, index)) {
		luaL_checktype(L, index, LUA_TTABLE);
		options.index = lua_absindex(L, index);
		options_check_names(&options, names);
	}
	resolution = push_empty(L);
	index = lua_gettop(L);
	if (options.index != 0 && option_push_type(&options, "env", LUA_TTABLE))
		env.index = lua_gettop(L);
	context.home = read_variable(&env, "HOME");
	context.tmpdir = read_variable(&env, "TMPDIR");
	context.search_path = read_variable(&env, "PATH");
	context.cwd = resolution->cwd;
	result = read_cwd(&options, resolution->cwd, &failure);
	if (result == 0)
		result = resolve(policy, &context, &resolution->resolved, &failure);
	lua_settop(L, index);
	if (result == 0)
		return true;
	resolution_release(L, index);
	lua_pop(L, 1);
	push_failure(L, &failure);
	return false;
}

/* ---- questions ----------------------------------------------------------------------------- */

/* The answer about the string at PATH; its strings live until the next question. */
static bool ask(lua_State *L, struct resolution *resolution, int path, struct answer *answer)
{
	struct failure failure;
	size_t length;
	const char *text;

	luaL_checktype(L, path, LUA_TSTRING);
	text = lua_tolstring(L, path, &length);
	arena_release(&resolution->scratch);
	if (strlen(text) != length || length == 0) {
		failure_policy(&failure,
		               length == 0 ? "The path is empty." : "The path contains a NUL byte.");
		push_failure(L, &failure);
		return false;
	}
	if (resolved_ask(&resolution->resolved, resolution->cwd, text, &resolution->scratch, answer,
	                 &failure) == 0)
		return true;
	push_failure(L, &failure);
	return false;
}

static void set_string(lua_State *L, const char *name, const char *text)
{
	if (text == NULL)
		return;
	lua_pushstring(L, text);
	lua_setfield(L, -2, name);
}

static void set_index(lua_State *L, const struct resolved_rule *rule)
{
	if (rule->index == 0)
		return;
	lua_pushinteger(L, (lua_Integer)rule->index);
	lua_setfield(L, -2, "index");
}

int resolution_access(lua_State *L, int index, int path)
{
	struct resolution *resolution = check(L, index);
	struct answer answer;

	if (!ask(L, resolution, path, &answer))
		return 2;
	lua_pushstring(L, policy_access_words[answer.access]);
	lua_createtable(L, 0, 5);
	set_string(L, "origin", answer.rule == NULL ? "none" : origin_words[answer.rule->origin]);
	set_string(L, "path", answer.rule == NULL ? answer.path : answer.rule->path);
	set_string(L, "canonical", answer.path);
	set_string(L, "reason", answer.reason);
	if (answer.rule != NULL)
		set_index(L, answer.rule);
	return 2;
}

/* Pushes why, as a clause. */
static void push_reason(lua_State *L, const struct answer *answer)
{
	const struct resolved_rule *rule = answer->rule;

	if (answer->reason != NULL) {
		lua_pushstring(L, answer->reason);
		return;
	}
	if (rule == NULL) {
		lua_pushliteral(L, "no rule grants it");
		return;
	}
	switch (rule->origin) {
	case ORIGIN_RULE:
		lua_pushfstring(L, "rule %d (%s) decides", (int)rule->index, rule->written);
		break;
	case ORIGIN_SPECIAL:
		lua_pushfstring(L, "special rule %d decides for %s", (int)rule->index, rule->path);
		break;
	case ORIGIN_GLOB:
		lua_pushfstring(L, "%s matches the deny glob of rule %d", rule->path, (int)rule->index);
		break;
	case ORIGIN_PROTECTED:
		lua_pushfstring(L, "%s is protected metadata", rule->path);
		break;
	case ORIGIN_PRIVATE_TMP:
	case ORIGIN_PRIVATE_HOME:
		lua_pushfstring(L, "%s is private to the run and gone afterwards", rule->path);
		break;
	case ORIGIN_PRIVATE_RUNTIME:
		lua_pushfstring(L, "private_runtime decides for %s", rule->path);
		break;
	case ORIGIN_DEV:
	case ORIGIN_PROC:
		lua_pushfstring(L, "%s is the sandbox's own", rule->path);
		break;
	case ORIGIN_SOCKET:
		lua_pushfstring(L, "unix_sockets decides for %s", rule->path);
		break;
	case ORIGIN_DEVICE:
		lua_pushfstring(L, "%s is one of the devices", rule->path);
		break;
	case ORIGIN_FILESYSTEM:
		lua_pushliteral(L, "the filesystem is not restricted");
		break;
	}
}

int resolution_explain(lua_State *L, int index, int path)
{
	static const char *const verdicts[] = {
		[ACCESS_DENY] = " is denied: ",
		[ACCESS_READ] = " can be read: ",
		[ACCESS_WRITE] = " can be read and written: ",
	};
	struct resolution *resolution = check(L, index);
	struct answer answer;

	if (!ask(L, resolution, path, &answer))
		return 2;
	luaL_checkstack(L, 8, "explain");
	lua_pushvalue(L, path);
	if (strcmp(lua_tostring(L, path), answer.path) != 0)
		lua_pushfstring(L, " (%s)", answer.path);
	else
		lua_pushliteral(L, "");
	lua_pushstring(L, verdicts[answer.access]);
	push_reason(L, &answer);
	lua_pushliteral(L, ".");
	lua_concat(L, 5);
	return 1;
}

static void push_rule(lua_State *L, const struct resolved_rule *rule)
{
	lua_createtable(L, 0, 7);
	set_string(L, "path", rule->path);
	set_string(L, "access", policy_access_words[rule->access]);
	set_string(L, "origin", origin_words[rule->origin]);
	set_string(L, "source", rule->source);
	set_string(L, "written", rule->written);
	set_index(L, rule);
	lua_pushboolean(L, rule->object <= OBJECT_PLACEHOLDER);
	lua_setfield(L, -2, "missing");
}

int resolution_rules(lua_State *L, int index)
{
	const struct resolved *resolved = &check(L, index)->resolved;

	lua_createtable(L, (int)resolved->count, 0);
	for (size_t i = 0; i < resolved->count; i++) {
		push_rule(L, &resolved->rules[i]);
		lua_rawseti(L, -2, (int)(i + 1));
	}
	return 1;
}

/* ---- methods ---------------------------------------------------------------------------------- */

static int access_method(lua_State *L)
{
	return resolution_access(L, 1, 2);
}

static int explain_method(lua_State *L)
{
	return resolution_explain(L, 1, 2);
}

static int rules_method(lua_State *L)
{
	return resolution_rules(L, 1);
}

/* resolution:notes() → list of { path =, text = }: what was left out, and why */
static int notes_method(lua_State *L)
{
	const struct resolved *resolved = &check(L, 1)->resolved;

	lua_createtable(L, (int)resolved->note_count, 0);
	for (size_t i = 0; i < resolved->note_count; i++) {
		lua_createtable(L, 0, 2);
		set_string(L, "path", resolved->notes[i].path);
		set_string(L, "text", resolved->notes[i].text);
		lua_rawseti(L, -2, (int)(i + 1));
	}
	return 1;
}

/* resolution:links() → list of { path =, target = }: links that rules go through */
static int links_method(lua_State *L)
{
	const struct resolved *resolved = &check(L, 1)->resolved;

	lua_createtable(L, (int)resolved->link_count, 0);
	for (size_t i = 0; i < resolved->link_count; i++) {
		lua_createtable(L, 0, 2);
		set_string(L, "path", resolved->links[i].path);
		set_string(L, "target", resolved->links[i].target);
		lua_rawseti(L, -2, (int)(i + 1));
	}
	return 1;
}

/* resolution:refusal() → why nothing may be launched under these rules, an error; or nil */
static int refusal_method(lua_State *L)
{
	const struct resolved *resolved = &check(L, 1)->resolved;

	if (!resolved->refused)
		return 0;
	push_failure_table(L, &resolved->refusal);
	return 1;
}

static int to_string(lua_State *L)
{
	const struct resolved *resolved = &check(L, 1)->resolved;

	lua_pushfstring(L, "Resolution: %d rules%s", (int)resolved->count,
	                resolved->refused ? ", refused" : "");
	return 1;
}

static const luaL_Reg methods[] = {
	{ "access", access_method },
	{ "explain", explain_method },
	{ "rules", rules_method },
	{ "notes", notes_method },
	{ "links", links_method },
	{ "refusal", refusal_method },
	{ NULL, NULL },
};

static const luaL_Reg metamethods[] = {
	{ "__gc", collect },
	{ "__tostring", to_string },
	{ NULL, NULL },
};

void resolution_register(lua_State *L)
{
	luaL_newmetatable(L, RESOLUTION_METATABLE);
	compat_setfuncs(L, metamethods);
	lua_newtable(L);
	compat_setfuncs(L, methods);
	lua_setfield(L, -2, "__index");
	lua_pushliteral(L, RESOLUTION_METATABLE);
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 1);
}
