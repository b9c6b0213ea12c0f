/* The parts of mounts_build and what they share.  Nothing outside mounts*.c includes this. */
#ifndef EXECSANDBOX_MOUNTS_INTERNAL_H
#define EXECSANDBOX_MOUNTS_INTERNAL_H

#include <string.h>

#include "mounts.h"

struct builder {
	const struct policy *policy;
	const struct resolved *resolved;
	const struct mounts_options *options;
	struct arena *arena;
	struct mounts *mounts;
	struct failure *failure;
	size_t *enclosing; /* by rule: the mount that shows the rule's path */
	size_t top;        /* the mount that shows the rule at hand; SIZE_MAX: the last one */
	/* Of the writable mount at hand, as paths of the view: */
	struct strings pins;   /* what may not be renamed */
	struct strings frozen; /* directories to which nothing may be added, shallow ones first */
};

/* Most functions return 0, or -1 (NULL) with the builder's failure filled. */

int builder_memory(struct builder *b);

struct mount *builder_add(struct builder *b, enum mount_kind kind, const char *path);

/* A bind of what RULE names, to be checked by object in the end. */
struct mount *builder_bind(struct builder *b, enum mount_kind kind,
                           const struct resolved_rule *rule);

/* The placeholder for MOUNT stands on the host at HOST. */
int builder_claim(struct builder *b, struct mount *mount, const char *host);

/* SOURCE, and below it what PATH is below DIRECTORY; NULL when memory is exhausted. */
const char *mounts_rebase(struct arena *arena, const char *path, const char *directory,
                          const char *source);

/* The host's path of what WITHIN, which shows the host's files, shows at PATH; or NULL likewise. */
const char *builder_host_path(const struct builder *b, const struct mount *within,
                              const char *path);

/*
 * Binds RULE's object writable, guarded against what would undo the rules below it; with
 * BENEATH_ALREADY the same object is what the mount goes over.
 */
int builder_writable(struct builder *b, const struct resolved_rule *rule, bool beneath_already);
/* The same for a rule at "/". */
int builder_writable_root(struct builder *b, const struct resolved_rule *rule);

/* The host's files are visible through it, as opposed to a directory of our making. */
static inline bool shows_host(const struct mount *mount)
{
	return mount->kind == MOUNT_BIND_READ || mount->kind == MOUNT_BIND_WRITE ||
	       mount->kind == MOUNT_BIND_DEVICE;
}

static inline bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	if (length == 1)
		return path[0] == '/' && path[1] != '\0';
	return strncmp(path, directory, length) == 0 && path[length] == '/';
}

static inline bool is_missing(const struct resolved_rule *rule)
{
	return rule->object == OBJECT_MISSING || rule->object == OBJECT_PLACEHOLDER;
}

/* The rule's directory is made for the run: nothing of the host's is in it. */
static inline bool is_fresh(const struct resolved_rule *rule)
{
	return rule->origin == ORIGIN_PRIVATE_TMP || rule->origin == ORIGIN_PRIVATE_HOME ||
	       rule->origin == ORIGIN_PROC || rule->origin == ORIGIN_DEV;
}

static inline const char *rule_source(const struct resolved_rule *rule)
{
	return rule->source != NULL ? rule->source : rule->path;
}

#endif
