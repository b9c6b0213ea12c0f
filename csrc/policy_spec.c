/* From a policy back to a table: every field, the defaults included. */
#include <string.h>

#include "policy_parts.h"

static void set_string(lua_State *L, const char *name, const char *text)
{
	if (text == NULL)
		return;
	lua_pushstring(L, text);
	lua_setfield(L, -2, name);
}

static void set_boolean(lua_State *L, const char *name, bool value)
{
	lua_pushboolean(L, value);
	lua_setfield(L, -2, name);
}

static void set_choice(lua_State *L, const char *name, enum choice choice)
{
	if (choice != CHOICE_AUTO)
		set_boolean(L, name, choice == CHOICE_YES);
}

static void set_strings(lua_State *L, const char *name, const struct strings *strings)
{
	lua_createtable(L, (int)strings->count, 0);
	for (size_t i = 0; i < strings->count; i++) {
		lua_pushstring(L, strings->items[i]);
		lua_rawseti(L, -2, (int)(i + 1));
	}
	lua_setfield(L, -2, name);
}

static void set_rules(lua_State *L, const struct policy *policy)
{
	lua_createtable(L, (int)policy->rule_count, 0);
	for (size_t i = 0; i < policy->rule_count; i++) {
		const struct rule *rule = &policy->rules[i];
		lua_createtable(L, 0, 3);
		set_string(L, "access", policy_access_words[rule->access]);
		if (rule->form == RULE_SPECIAL)
			set_string(L, "special", policy_special_words[rule->special]);
		else
			set_string(L, rule->form == RULE_GLOB ? "glob" : "path", rule->path);
		set_string(L, "source", rule->source);
		set_string(L, "subpath", rule->subpath);
		lua_rawseti(L, -2, (int)(i + 1));
	}
	lua_setfield(L, -2, "rules");
}

static void set_network(lua_State *L, const struct policy *policy)
{
	if (!policy->network_loopback && !policy->network_filtering) {
		set_string(L, "network", policy_network_words[policy->network]);
		return;
	}
	lua_createtable(L, 0, 3);
	set_string(L, "mode", policy_network_words[policy->network]);
	if (policy->network_loopback)
		set_boolean(L, "loopback", true);
	if (policy->network_filtering) {
		set_strings(L, "allow", &policy->network_allow);
		set_strings(L, "deny", &policy->network_deny);
	}
	lua_setfield(L, -2, "network");
}

static void set_unix_sockets(lua_State *L, const struct policy *policy)
{
	if (policy->unix_sockets == UNIX_SOCKETS_LIST)
		set_strings(L, "unix_sockets", &policy->unix_socket_paths);
	else if (policy->unix_sockets != UNIX_SOCKETS_DEFAULT)
		set_string(L, "unix_sockets",
		           policy->unix_sockets == UNIX_SOCKETS_NONE ? "none" : "internal");
}

static void set_limits(lua_State *L, const struct policy *policy)
{
	lua_createtable(L, 0, LIMIT_COUNT);
	for (size_t i = 0; i < LIMIT_COUNT; i++) {
		if (policy->limits[i] == LIMIT_NONE)
			continue;
		lua_pushnumber(L, (lua_Number)policy->limits[i]);
		lua_setfield(L, -2, policy_limit_names[i]);
	}
	lua_setfield(L, -2, "limits");
}

void policy_push_spec(lua_State *L, const struct policy *policy)
{
	luaL_checkstack(L, 8, "spec");
	lua_createtable(L, 0, 14);
	set_string(L, "filesystem", policy_filesystem_words[policy->filesystem]);
	set_rules(L, policy);
	set_strings(L, "workspace_roots", &policy->workspace_roots);
	set_strings(L, "protected_metadata", &policy->protected_metadata);
	set_strings(L, "devices", &policy->devices);
	set_network(L, policy);
	set_unix_sockets(L, policy);
	set_choice(L, "isolate_processes", policy->isolate_processes);
	set_choice(L, "mount_proc", policy->mount_proc);
	set_boolean(L, "private_tmp", policy->private_tmp);
	set_boolean(L, "private_runtime", policy->private_runtime);
	set_boolean(L, "allow_user_namespaces", policy->allow_user_namespaces);
	if (policy->glob_scan_max_depth >= 0) {
		lua_pushnumber(L, (lua_Number)policy->glob_scan_max_depth);
		lua_setfield(L, -2, "glob_scan_max_depth");
	}
	set_limits(L, policy);
}
