/*
 * Paths as byte strings: nothing here looks at the filesystem, save
 * path_changeable, which asks what the caller may do to a directory.
 */
#ifndef EXECSANDBOX_PATH_H
#define EXECSANDBOX_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "arena.h"

/*
 * A copy of PATH without empty and `.` components and without a trailing slash
 * ("/" stays, "." for nothing), or NULL when memory is exhausted.  `..` stays: what
 * it means depends on whether the name before it is a symbolic link.
 */
char *path_simplify(struct arena *arena, const char *path);

/* Whether one of PATH's components is `..`. */
bool path_has_dotdot(const char *path);

/* The number of components of a simplified absolute path; "/" has none. */
size_t path_depth(const char *path);

/* Whether simplified absolute PATH is DIRECTORY or something below it. */
bool path_is_within(const char *path, const char *directory);

/*
 * The next component of *CURSOR, or NULL at the end; *LENGTH is its length and
 * *CURSOR is moved behind it.  Skips slashes.
 */
const char *path_next(const char **cursor, size_t *length);

/*
 * Whether the caller, or a command that runs with its identity, can add, remove or
 * replace names in directory NAME (relative to FD, as in openat): it has write
 * permission, or owns the directory and could give itself that permission.  False on
 * a read-only file system.
 */
bool path_changeable(int fd, const char *name);

#endif
