/*
 * A policy as the caller wrote it: checked, immutable, independent of cwd,
 * environment and filesystem.  policy_lua.c makes it from a Lua table,
 * resolve.c turns it into absolute rules.
 */
#ifndef EXECSANDBOX_POLICY_H
#define EXECSANDBOX_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

/* Ordered so that the smaller value wins at the same path. */
enum access { ACCESS_DENY, ACCESS_READ, ACCESS_WRITE };

enum filesystem_mode { FILESYSTEM_RESTRICTED, FILESYSTEM_UNRESTRICTED, FILESYSTEM_EXTERNAL };
enum network_mode { NETWORK_ENABLED, NETWORK_ISOLATED, NETWORK_PROXY_ONLY };
enum choice { CHOICE_AUTO, CHOICE_NO, CHOICE_YES }; /* Lua's nil, false, true */
enum unix_sockets {
	UNIX_SOCKETS_DEFAULT,
	UNIX_SOCKETS_NONE,
	UNIX_SOCKETS_INTERNAL,
	UNIX_SOCKETS_LIST
};

enum rule_form { RULE_PATH, RULE_GLOB, RULE_SPECIAL };
enum special {
	SPECIAL_ROOT,
	SPECIAL_MINIMAL,
	SPECIAL_HOME,
	SPECIAL_SEARCH_PATH,
	SPECIAL_WORKING_DIRECTORY,
	SPECIAL_WORKSPACE_ROOTS,
	SPECIAL_TMPDIR,
	SPECIAL_SLASH_TMP,
};

struct rule {
	enum rule_form form;
	enum access access;
	enum special special;
	const char *path;    /* path or glob, as written */
	const char *source;  /* remapped host path, absolute, or NULL */
	const char *subpath; /* of SPECIAL_WORKSPACE_ROOTS, relative, or NULL */
};

struct strings {
	const char **items;
	size_t count;
};

enum limit {
	LIMIT_CPU_SECONDS,
	LIMIT_MEMORY_BYTES,
	LIMIT_PROCESSES,
	LIMIT_OPEN_FILES,
	LIMIT_FILE_SIZE_BYTES,
	LIMIT_CORE_BYTES,
	LIMIT_COUNT
};
#define LIMIT_NONE UINT64_MAX

struct policy {
	struct arena arena; /* owns everything below */
	enum filesystem_mode filesystem;
	enum network_mode network;
	bool network_loopback;  /* isolated: the sandbox's own loopback is usable */
	bool network_filtering; /* proxy_only with allow or deny lists */
	struct strings network_allow;
	struct strings network_deny;
	struct rule *rules;
	size_t rule_count;
	struct strings workspace_roots;    /* absolute, lexically normalised */
	struct strings protected_metadata; /* basenames */
	struct strings devices;
	struct strings unix_socket_paths;
	enum unix_sockets unix_sockets;
	enum choice isolate_processes;
	enum choice mount_proc;
	bool private_tmp;
	bool private_runtime;
	bool allow_user_namespaces;
	int64_t glob_scan_max_depth;  /* -1: none */
	uint64_t limits[LIMIT_COUNT]; /* LIMIT_NONE where not set */
};

#endif
