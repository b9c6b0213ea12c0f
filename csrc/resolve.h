/*
 * Resolution: a pure function of (policy, cwd, environment, what the filesystem
 * shows now) to absolute rules.  policy:access, policy:rules, plans and every
 * backend work from its result and from nothing else.
 */
#ifndef EXECSANDBOX_RESOLVE_H
#define EXECSANDBOX_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "arena.h"
#include "failure.h"
#include "policy.h"

/* What stood at a rule's path when it was resolved. */
enum object {
	OBJECT_MISSING,
	OBJECT_PLACEHOLDER, /* a placeholder directory of ours (see claim.h): counts as missing */
	OBJECT_DIRECTORY,
	OBJECT_FILE,  /* a regular file */
	OBJECT_OTHER, /* socket, FIFO or device */
};

/* Where a resolved rule came from. */
enum origin {
	ORIGIN_RULE,            /* the user's path rule number `index` */
	ORIGIN_SPECIAL,         /* the user's special rule number `index` */
	ORIGIN_GLOB,            /* a match of the user's deny glob number `index` */
	ORIGIN_PROTECTED,       /* protected_metadata, or what a `.git` file points to */
	ORIGIN_PRIVATE_TMP,     /* private_tmp: a fresh directory, not the host's */
	ORIGIN_PRIVATE_HOME,    /* private_home: a fresh directory with HOME and TMPDIR in it */
	ORIGIN_PRIVATE_RUNTIME, /* private_runtime: /run hidden, name resolution re-opened */
	ORIGIN_DEV,             /* the sandbox's own /dev */
	ORIGIN_PROC,            /* the sandbox's own /proc */
	ORIGIN_SOCKET,          /* a host socket masked, or re-opened, by unix_sockets */
	ORIGIN_DEVICE,          /* a node named by `devices` */
	ORIGIN_FILESYSTEM,      /* filesystem = "unrestricted" or "external": everything */
};

struct resolved_rule {
	const char *path;    /* canonical and absolute; what the command sees */
	const char *source;  /* canonical host path shown there, remapped or below something
	                        remapped; NULL: the same, or denied */
	const char *written; /* the path before canonicalisation, for messages */
	enum access access;
	enum origin origin;
	size_t index; /* 1-based number of the user's rule, or 0 */
	enum object object;
	dev_t device; /* of the object (of `source` where given); 0, 0 where missing */
	ino_t inode;
};

/* A symbolic link on the way to a rule's path, which the view must keep. */
struct resolved_link {
	const char *path;   /* the link itself: its directory is canonical */
	const char *target; /* its text */
};

/* What was left out, and why; plans report it. */
struct resolved_note {
	const char *path;
	const char *text; /* a sentence */
};

struct resolved {
	struct arena arena;          /* owns everything below */
	struct resolved_rule *rules; /* by depth, then path; every path once */
	size_t count;
	struct resolved_link *links;
	size_t link_count;
	struct resolved_note *notes;
	size_t note_count;
	size_t *table; /* rule number + 1 by hash of its path; a power of two of slots */
	size_t table_size;
	const size_t *overlays; /* numbers of rules that show something else than the host's object */
	size_t overlay_count;
	const char *cwd; /* canonical; NULL where it does not exist */
	dev_t cwd_device;
	ino_t cwd_inode;
	/*
	 * The first reason for which nothing may be launched under these rules (a missing
	 * write root, a link that the command could replace, …); access questions are
	 * still answered.
	 */
	bool refused;
	struct failure refusal;
};

/* What resolution depends on besides the policy. NULL: not set. Never modified. */
struct resolve_context {
	const char *cwd; /* absolute; required */
	const char *home;
	const char *tmpdir;
	const char *search_path;  /* PATH */
	const char *private_home; /* canonical, not there yet: see home.h */
};

/*
 * Resolves POLICY. On 0, OUT is filled (possibly with `refused` set) and must be
 * released with resolved_release; OUT must be zeroed before. On -1, FAILURE says
 * why and OUT holds nothing but what resolved_release frees.
 */
int resolve(const struct policy *policy, const struct resolve_context *context,
            struct resolved *out, struct failure *failure);

/* Idempotent. */
void resolved_release(struct resolved *resolved);

/*
 * The rule that decides about PATH, which must be absolute and canonical; NULL where
 * none matches (access is deny then).  Takes time linear in the path, not in the rules.
 */
const struct resolved_rule *resolved_find(const struct resolved *resolved, const char *path);

/* What resolution says about a path as somebody writes it. */
struct answer {
	enum access access;
	const struct resolved_rule *rule; /* that decided; NULL where none applies */
	const char *path;                 /* canonical, as far as it could be followed */
	const char *reason; /* why it is denied whatever the rules say, a clause; or NULL */
};

/*
 * What a command may do with PATH (relative ones: of CWD), which need not exist.
 * Links are followed as the command would: one that it cannot see leads nowhere.
 * 0, or -1 with FAILURE. The answer's strings live in ARENA.
 */
int resolved_ask(const struct resolved *resolved, const char *cwd, const char *path,
                 struct arena *arena, struct answer *answer, struct failure *failure);

/* The nearest rule at a proper ancestor of rules[NUMBER]; NULL where there is none. */
const struct resolved_rule *resolved_parent(const struct resolved *resolved, size_t number);

#endif
