/* From a Lua table to a policy: types raise, meanings are failures. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "failure_lua.h"
#include "glob.h"
#include "host_pattern.h"
#include "number.h"
#include "option.h"
#include "path.h"
#include "policy_parts.h"
#include "reserved.h"

struct parser {
	lua_State *L;
	struct policy *policy;
	struct failure *failure;
	const char *function;
};

static void *need(struct parser *parser, void *memory)
{
	if (memory == NULL)
		raise_memory(parser->L);
	return memory;
}

static struct options options_at(struct parser *parser, int index, const char *prefix)
{
	return (struct options){ parser->L, lua_absindex(parser->L, index), parser->function, prefix };
}

/* ---- strings -------------------------------------------------------------------------- */

/* A copy of the string at the top, which is popped; NULL with failure for a NUL byte in it. */
static const char *take_string(struct parser *parser, const char *prefix, const char *name)
{
	size_t length;
	const char *text = lua_tolstring(parser->L, -1, &length);
	const char *copy;

	if (strlen(text) != length) {
		failure_policy(parser->failure, "%s%s contains a NUL byte.", prefix, name);
		return NULL;
	}
	copy = need(parser, arena_copy(&parser->policy->arena, text, length));
	lua_pop(parser->L, 1);
	return copy;
}

/* 1 and *OUT, 0 where the option is not set, -1. */
static int read_string(struct parser *parser, const struct options *options, const char *name,
                       const char **out)
{
	if (!option_push_type(options, name, LUA_TSTRING))
		return 0;
	*out = take_string(parser, options->prefix, name);
	return *out == NULL ? -1 : 1;
}

/* A word of an enumeration; 1 and *VALUE, 0 where not set, -1. */
static int read_word(struct parser *parser, const struct options *options, const char *name,
                     const char *const *words, int *value)
{
	const char *text;
	int found = read_string(parser, options, name, &text);
	char list[160] = "";

	if (found <= 0)
		return found;
	for (int i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], text) == 0) {
			*value = i;
			return 1;
		}
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s'%s'", i == 0 ? "" : ", ",
		         words[i]);
	}
	return failure_policy(parser->failure, "%s%s is '%.80s'; it must be one of %s.",
	                      options->prefix, name, text, list);
}

typedef int check_string(struct parser *parser, const char *name, const char **text);

/* Appends the list NAME to STRINGS (replaces it, unless APPEND). 1, 0 where not set, -1. */
static int read_strings(struct parser *parser, const struct options *options, const char *name,
                        struct strings *strings, bool append, check_string *check)
{
	lua_State *L = parser->L;
	size_t length, kept = append ? strings->count : 0;
	const char **items;
	char numbered[80];

	if (!option_push(options, name))
		return 0;
	length = option_list_length(options, name, -1);
	items = need(parser, arena_array(&parser->policy->arena, kept + length + 1, sizeof *items));
	if (kept > 0)
		memcpy(items, strings->items, kept * sizeof *items);
	for (size_t i = 0; i < length; i++) {
		snprintf(numbered, sizeof numbered, "%s[%zu]", name, i + 1);
		lua_rawgeti(L, -1, (int)(i + 1));
		if (lua_type(L, -1) != LUA_TSTRING)
			option_type_error(options, numbered, "string", -1);
		items[kept + i] = take_string(parser, options->prefix, numbered);
		if (items[kept + i] == NULL || check(parser, numbered, &items[kept + i]) != 0)
			return -1;
	}
	lua_pop(L, 1);
	strings->items = items;
	strings->count = kept + length;
	return 1;
}

static int simplify(struct parser *parser, const char *what, const char **path)
{
	*path = need(parser, path_simplify(&parser->policy->arena, *path));
	if (strlen(*path) >= PATH_MAX)
		return failure_policy(parser->failure,
		                      "%s is longer than the %d bytes that a path may have.", what,
		                      PATH_MAX - 1);
	return 0;
}

static int check_absolute(struct parser *parser, const char *what, const char **path)
{
	if (**path != '/')
		return failure_policy(parser->failure, "%s is '%.200s'; it must be an absolute path.", what,
		                      *path);
	return simplify(parser, what, path);
}

static int check_basename(struct parser *parser, const char *what, const char **name)
{
	if (**name == '\0' || strchr(*name, '/') != NULL || strcmp(*name, ".") == 0 ||
	    strcmp(*name, "..") == 0 || strlen(*name) > NAME_MAX)
		return failure_policy(parser->failure, "%s is '%.200s'; it must be a single name.", what,
		                      *name);
	return 0;
}

static int check_device(struct parser *parser, const char *what, const char **path)
{
	if (check_absolute(parser, what, path) != 0)
		return -1;
	if (strncmp(*path, "/dev/", 5) != 0 || path_has_dotdot(*path))
		return failure_policy(parser->failure, "%s is '%.200s'; it must be a path below /dev.",
		                      what, *path);
	return 0;
}

/* ---- rules ------------------------------------------------------------------------------ */

static const char *const rule_fields[] = { "path",   "glob",    "special", "access",
	                                       "source", "subpath", NULL };

static int check_path_rule(struct parser *parser, const char *prefix, struct rule *rule)
{
	char what[64];

	snprintf(what, sizeof what, "%spath", prefix);
	if (*rule->path == '\0')
		return failure_policy(parser->failure, "%s is empty.", what);
	if (simplify(parser, what, &rule->path) != 0)
		return -1;
	if (rule->source != NULL) {
		snprintf(what, sizeof what, "%ssource", prefix);
		if (check_absolute(parser, what, &rule->source) != 0)
			return -1;
		if (rule->access == ACCESS_DENY)
			return failure_policy(parser->failure, "%s: what is denied shows nothing.", what);
	}
	return *rule->path != '/' || path_has_dotdot(rule->path)
	           ? 0
	           : reserved_check(rule->path, rule->path, parser->failure);
}

static int check_glob_rule(struct parser *parser, const char *prefix, struct rule *rule)
{
	if (rule->access != ACCESS_DENY)
		return failure_policy(
			parser->failure,
			"%sglob grants '%s' access; a glob can only deny, since what it matches "
			"later would not be granted.",
			prefix, policy_access_words[rule->access]);
	return glob_check(rule->path, parser->failure);
}

static int check_special_rule(struct parser *parser, const char *prefix, struct rule *rule)
{
	if (rule->special == SPECIAL_MINIMAL && rule->access != ACCESS_READ)
		return failure_policy(parser->failure, "%sspecial 'minimal' can only be read.", prefix);
	if (rule->subpath == NULL)
		return 0;
	if (rule->special != SPECIAL_WORKSPACE_ROOTS)
		return failure_policy(parser->failure,
		                      "%ssubpath belongs to special 'workspace_roots' only.", prefix);
	if (*rule->subpath == '\0' || *rule->subpath == '/' || path_has_dotdot(rule->subpath))
		return failure_policy(parser->failure,
		                      "%ssubpath is '%.200s'; it must be a relative path without '..'.",
		                      prefix, rule->subpath);
	if (simplify(parser, "subpath", &rule->subpath) != 0)
		return -1;
	if (strcmp(rule->subpath, ".") == 0)
		rule->subpath = NULL;
	return 0;
}

static int read_form(struct parser *parser, const struct options *options, struct rule *rule)
{
	const char *path = NULL, *glob = NULL;
	int special = 0;
	int has_path = read_string(parser, options, "path", &path);
	int has_glob = has_path < 0 ? -1 : read_string(parser, options, "glob", &glob);
	int has_special =
		has_glob < 0 ? -1 : read_word(parser, options, "special", policy_special_words, &special);

	if (has_special < 0)
		return -1;
	if (has_path + has_glob + has_special != 1)
		return failure_policy(parser->failure,
		                      "%.*s must have exactly one of path, glob and special.",
		                      (int)strlen(options->prefix) - 1, options->prefix);
	rule->form = has_path ? RULE_PATH : has_glob ? RULE_GLOB : RULE_SPECIAL;
	rule->path = has_path ? path : glob;
	rule->special = (enum special)special;
	return 0;
}

static int read_rule(struct parser *parser, int index, size_t number, struct rule *rule)
{
	char prefix[48];
	struct options options;
	int access = 0, found;

	snprintf(prefix, sizeof prefix, "rules[%zu].", number);
	options = options_at(parser, index, prefix);
	options_check_names(&options, rule_fields);
	found = read_word(parser, &options, "access", policy_access_words, &access);
	if (found < 0)
		return -1;
	if (found == 0)
		luaL_error(parser->L, "missing option '%saccess' to '%s'", prefix, parser->function);
	rule->access = (enum access)access;
	if (read_form(parser, &options, rule) != 0 ||
	    read_string(parser, &options, "source", &rule->source) < 0 ||
	    read_string(parser, &options, "subpath", &rule->subpath) < 0)
		return -1;
	if (rule->form != RULE_PATH && rule->source != NULL)
		return failure_policy(parser->failure, "%ssource belongs to rules with a path only.",
		                      prefix);
	if (rule->form != RULE_SPECIAL && rule->subpath != NULL)
		return failure_policy(parser->failure,
		                      "%ssubpath belongs to special 'workspace_roots' only.", prefix);
	switch (rule->form) {
	case RULE_PATH:
		return check_path_rule(parser, prefix, rule);
	case RULE_GLOB:
		return check_glob_rule(parser, prefix, rule);
	case RULE_SPECIAL:
		return check_special_rule(parser, prefix, rule);
	}
	return 0;
}

/* Rules are always added to those that are there: indices go on. */
static int read_rules(struct parser *parser, const struct options *options)
{
	lua_State *L = parser->L;
	struct policy *policy = parser->policy;
	size_t length, kept = policy->rule_count;
	struct rule *rules;
	char name[48];

	if (!option_push(options, "rules"))
		return 0;
	length = option_list_length(options, "rules", -1);
	rules = need(parser, arena_array(&policy->arena, kept + length + 1, sizeof *rules));
	if (kept > 0)
		memcpy(rules, policy->rules, kept * sizeof *rules);
	for (size_t i = 0; i < length; i++) {
		lua_rawgeti(L, -1, (int)(i + 1));
		snprintf(name, sizeof name, "rules[%zu]", i + 1);
		if (lua_type(L, -1) != LUA_TTABLE)
			option_type_error(options, name, "table", -1);
		if (read_rule(parser, -1, i + 1, &rules[kept + i]) != 0)
			return -1;
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	policy->rules = rules;
	policy->rule_count = kept + length;
	return 0;
}

/* ---- network ------------------------------------------------------------------------------ */

/* The canonical spelling is what is kept: policies that mean the same are the same. */
static int check_host(struct parser *parser, const char *what, const char **text)
{
	struct host_pattern pattern;
	const char *wrong = host_pattern_parse(*text, &pattern);
	char canonical[PATTERN_TEXT_SIZE];

	if (wrong != NULL)
		return failure_policy(
			parser->failure,
			"%s is '%.200s': %s; it must be a host or host:port, like 'example.org:443', "
			"'*.example.org' or '[::1]:8080'.",
			what, *text, wrong);
	host_pattern_format(&pattern, canonical);
	*text = need(parser, arena_copy(&parser->policy->arena, canonical, strlen(canonical)));
	return 0;
}

static const char *const network_fields[] = { "mode", "loopback", "allow", "deny", NULL };

static int read_network_table(struct parser *parser, int index)
{
	struct options options = options_at(parser, index, "network.");
	struct policy *policy = parser->policy;
	int mode = 0, found, allow, deny;

	options_check_names(&options, network_fields);
	found = read_word(parser, &options, "mode", policy_network_words, &mode);
	if (found < 0)
		return -1;
	if (found == 0)
		luaL_error(parser->L, "missing option 'network.mode' to '%s'", parser->function);
	policy->network = (enum network_mode)mode;
	policy->network_loopback = option_boolean(&options, "loopback", false);
	allow = read_strings(parser, &options, "allow", &policy->network_allow, false, check_host);
	deny = allow < 0
	           ? -1
	           : read_strings(parser, &options, "deny", &policy->network_deny, false, check_host);
	if (deny < 0)
		return -1;
	policy->network_filtering = allow + deny > 0;
	if (policy->network_loopback && policy->network != NETWORK_ISOLATED)
		return failure_policy(parser->failure,
		                      "network.loopback belongs to network mode 'isolated' only.");
	if (policy->network_filtering && policy->network != NETWORK_PROXY_ONLY)
		return failure_policy(
			parser->failure,
			"network.allow and network.deny belong to network mode 'proxy_only' only.");
	return 0;
}

static int read_network(struct parser *parser, const struct options *options)
{
	struct policy *policy = parser->policy;
	int mode = 0, result = 0;

	if (!option_push(options, "network"))
		return 0;
	if (lua_type(parser->L, -1) != LUA_TTABLE && lua_type(parser->L, -1) != LUA_TSTRING)
		option_type_error(options, "network", "string or table", -1);
	policy->network_loopback = policy->network_filtering = false;
	policy->network_allow = policy->network_deny = (struct strings){ NULL, 0 };
	if (lua_type(parser->L, -1) == LUA_TTABLE)
		result = read_network_table(parser, -1);
	else if (read_word(parser, options, "network", policy_network_words, &mode) < 0)
		result = -1;
	else
		policy->network = (enum network_mode)mode;
	lua_pop(parser->L, 1);
	return result;
}

/* ---- the rest ------------------------------------------------------------------------------- */

static int read_unix_sockets(struct parser *parser, const struct options *options)
{
	static const char *const words[] = { "none", "internal", NULL };
	struct policy *policy = parser->policy;
	int word = 0, type, result;

	if (!option_push(options, "unix_sockets"))
		return 0;
	type = lua_type(parser->L, -1);
	if (type != LUA_TTABLE && type != LUA_TSTRING)
		option_type_error(options, "unix_sockets", "string or list", -1);
	lua_pop(parser->L, 1);
	if (type == LUA_TTABLE) {
		policy->unix_sockets = UNIX_SOCKETS_LIST;
		result = read_strings(parser, options, "unix_sockets", &policy->unix_socket_paths, false,
		                      check_absolute);
	} else {
		result = read_word(parser, options, "unix_sockets", words, &word);
		policy->unix_sockets = word == 0 ? UNIX_SOCKETS_NONE : UNIX_SOCKETS_INTERNAL;
		policy->unix_socket_paths = (struct strings){ NULL, 0 };
	}
	return result < 0 ? -1 : 0;
}

/* The least that each limit may be: below it nothing runs, which no one means. */
static const uint64_t least[LIMIT_COUNT] = {
	[LIMIT_CPU_SECONDS] = 1, [LIMIT_MEMORY_BYTES] = 1, [LIMIT_PROCESSES] = 1, [LIMIT_OPEN_FILES] = 1
};

static int read_integer(struct parser *parser, const struct options *options, const char *name,
                        uint64_t minimum, uint64_t *out)
{
	if (!option_push_type(options, name, LUA_TNUMBER))
		return 0;
	if (!number_to_u64(parser->L, -1, out) || *out < minimum)
		return failure_policy(
			parser->failure, "%s%s is %g; it must be a whole number from %d to 2^53.",
			options->prefix, name, (double)lua_tonumber(parser->L, -1), (int)minimum);
	lua_pop(parser->L, 1);
	return 1;
}

static int read_limits(struct parser *parser, const struct options *outer)
{
	struct options options;

	if (!option_push_type(outer, "limits", LUA_TTABLE))
		return 0;
	options = options_at(parser, -1, "limits.");
	options_check_names(&options, policy_limit_names);
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		if (read_integer(parser, &options, policy_limit_names[i], least[i],
		                 &parser->policy->limits[i]) < 0)
			return -1;
	lua_pop(parser->L, 1);
	return 0;
}

static int read_depth(struct parser *parser, const struct options *options)
{
	uint64_t depth = 0;
	int found = read_integer(parser, options, "glob_scan_max_depth", 0, &depth);

	if (found > 0)
		parser->policy->glob_scan_max_depth = (int64_t)depth;
	return found < 0 ? -1 : 0;
}

static enum choice read_choice(const struct options *options, const char *name, enum choice choice)
{
	if (!option_push_type(options, name, LUA_TBOOLEAN))
		return choice;
	choice = lua_toboolean(options->L, -1) ? CHOICE_YES : CHOICE_NO;
	lua_pop(options->L, 1);
	return choice;
}

static const char *const policy_fields[] = {
	"filesystem",
	"rules",
	"workspace_roots",
	"network",
	"protected_metadata",
	"mount_proc",
	"private_tmp",
	"private_runtime",
	"isolate_processes",
	"unix_sockets",
	"devices",
	"limits",
	"glob_scan_max_depth",
	"allow_user_namespaces",
	NULL,
};

static int read_lists(struct parser *parser, const struct options *options)
{
	struct policy *policy = parser->policy;

	if (read_strings(parser, options, "workspace_roots", &policy->workspace_roots, true,
	                 check_absolute) < 0 ||
	    read_strings(parser, options, "protected_metadata", &policy->protected_metadata, false,
	                 check_basename) < 0 ||
	    read_strings(parser, options, "devices", &policy->devices, true, check_device) < 0)
		return -1;
	return read_rules(parser, options);
}

static void read_flags(struct policy *policy, const struct options *options)
{
	policy->isolate_processes =
		read_choice(options, "isolate_processes", policy->isolate_processes);
	policy->mount_proc = read_choice(options, "mount_proc", policy->mount_proc);
	policy->private_tmp = option_boolean(options, "private_tmp", policy->private_tmp);
	policy->private_runtime = option_boolean(options, "private_runtime", policy->private_runtime);
	policy->allow_user_namespaces =
		option_boolean(options, "allow_user_namespaces", policy->allow_user_namespaces);
}

int policy_parse(lua_State *L, int index, const char *function, struct policy *policy,
                 struct failure *failure)
{
	struct parser parser = { L, policy, failure, function };
	struct options options = options_at(&parser, index, "");
	int filesystem = (int)policy->filesystem;

	options_check_names(&options, policy_fields);
	read_flags(policy, &options);
	if (read_word(&parser, &options, "filesystem", policy_filesystem_words, &filesystem) < 0)
		return -1;
	policy->filesystem = (enum filesystem_mode)filesystem;
	if (read_lists(&parser, &options) < 0 || read_network(&parser, &options) < 0 ||
	    read_unix_sockets(&parser, &options) < 0 || read_limits(&parser, &options) < 0)
		return -1;
	return read_depth(&parser, &options);
}
