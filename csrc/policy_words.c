#include <stddef.h>
#include <string.h>

#include "policy_parts.h"

const char *const policy_access_words[] = {
	[ACCESS_DENY] = "deny", [ACCESS_READ] = "read", [ACCESS_WRITE] = "write", NULL
};
const char *const policy_filesystem_words[] = {
	[FILESYSTEM_RESTRICTED] = "restricted",
	[FILESYSTEM_UNRESTRICTED] = "unrestricted",
	[FILESYSTEM_EXTERNAL] = "external",
	NULL,
};
const char *const policy_network_words[] = {
	[NETWORK_ENABLED] = "enabled",
	[NETWORK_ISOLATED] = "isolated",
	[NETWORK_PROXY_ONLY] = "proxy_only",
	NULL,
};
const char *const policy_special_words[] = {
	[SPECIAL_ROOT] = "root",
	[SPECIAL_MINIMAL] = "minimal",
	[SPECIAL_HOME] = "home",
	[SPECIAL_SEARCH_PATH] = "search_path",
	[SPECIAL_WORKING_DIRECTORY] = "working_directory",
	[SPECIAL_WORKSPACE_ROOTS] = "workspace_roots",
	[SPECIAL_TMPDIR] = "tmpdir",
	[SPECIAL_SLASH_TMP] = "slash_tmp",
	NULL,
};
const char *const policy_limit_names[LIMIT_COUNT + 1] = {
	[LIMIT_CPU_SECONDS] = "cpu_seconds",
	[LIMIT_MEMORY_BYTES] = "memory_bytes",
	[LIMIT_PROCESSES] = "processes",
	[LIMIT_OPEN_FILES] = "open_files",
	[LIMIT_FILE_SIZE_BYTES] = "file_size_bytes",
	[LIMIT_CORE_BYTES] = "core_bytes",
};

static const char *const default_metadata[] = { ".git", ".agents", ".codex" };

void policy_set_defaults(struct policy *policy)
{
	policy->filesystem = FILESYSTEM_RESTRICTED;
	policy->network = NETWORK_ISOLATED;
	policy->protected_metadata.items =
		(const char **)default_metadata; /* lists are never written */
	policy->protected_metadata.count = sizeof default_metadata / sizeof *default_metadata;
	policy->glob_scan_max_depth = -1;
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		policy->limits[i] = LIMIT_NONE;
	policy->limits[LIMIT_CORE_BYTES] = 0;
}

/* ---- copies ------------------------------------------------------------------------- */

static bool copy_text(struct arena *arena, const char **text)
{
	if (*text != NULL)
		*text = arena_copy(arena, *text, strlen(*text));
	return *text != NULL;
}

static int copy_strings(struct arena *arena, struct strings *strings)
{
	const char **items = arena_array(arena, strings->count + 1, sizeof *items);

	if (items == NULL)
		return -1;
	for (size_t i = 0; i < strings->count; i++) {
		items[i] = strings->items[i];
		if (!copy_text(arena, &items[i]))
			return -1;
	}
	strings->items = items;
	return 0;
}

static int copy_rules(struct policy *to)
{
	struct rule *rules = arena_array(&to->arena, to->rule_count + 1, sizeof *rules);

	if (rules == NULL)
		return -1;
	for (size_t i = 0; i < to->rule_count; i++) {
		rules[i] = to->rules[i];
		if ((rules[i].path != NULL && !copy_text(&to->arena, &rules[i].path)) ||
		    (rules[i].source != NULL && !copy_text(&to->arena, &rules[i].source)) ||
		    (rules[i].subpath != NULL && !copy_text(&to->arena, &rules[i].subpath)))
			return -1;
	}
	to->rules = rules;
	return 0;
}

int policy_copy(struct policy *to, const struct policy *from)
{
	struct arena arena = to->arena;

	*to = *from;
	to->arena = arena;
	if (copy_rules(to) != 0 || copy_strings(&to->arena, &to->workspace_roots) != 0 ||
	    copy_strings(&to->arena, &to->protected_metadata) != 0 ||
	    copy_strings(&to->arena, &to->devices) != 0 ||
	    copy_strings(&to->arena, &to->unix_socket_paths) != 0 ||
	    copy_strings(&to->arena, &to->network_allow) != 0 ||
	    copy_strings(&to->arena, &to->network_deny) != 0)
		return -1;
	return 0;
}
