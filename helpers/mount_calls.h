/*
 * The system calls that mount by descriptor: open_tree(2), move_mount(2), fsopen(2),
 * fsconfig(2), fsmount(2) (Linux 5.2) and mount_setattr(2) (5.12), which libc and its
 * headers may be too old for.
 */
#ifndef EXECSANDBOX_MOUNT_CALLS_H
#define EXECSANDBOX_MOUNT_CALLS_H

#include <stdint.h>

/* Attributes of a mount (MOUNT_ATTR_*). */
enum { MOUNT_READ_ONLY = 1, MOUNT_NO_SETID = 2, MOUNT_NO_DEVICES = 4, MOUNT_NO_EXEC = 8 };

/* An option of a filesystem; without a value, a flag. A list ends with a NULL name. */
struct mount_option {
	const char *name;
	const char *value;
};

/*
 * All return a close-on-exec descriptor or 0; or -1 with errno.
 */

/*
 * Adds the attributes SET to the mount FD, and with RECURSIVE to all below it.  What the
 * host mounts later does not appear there any more (mount_namespaces(7): private).
 */
int mount_set(int fd, int recursive, uint64_t set);

/*
 * A detached copy of the tree at FD (an O_PATH descriptor in this mount namespace) with
 * all that is mounted below it.  SET is added on every mount; what the host has set stays.
 */
int mount_clone(int fd, uint64_t set);

/* A detached new filesystem of TYPE. */
int mount_fresh(const char *type, const struct mount_option *options, uint64_t set);

/* Mounts TREE over the object at the O_PATH descriptor PLACE. */
int mount_attach(int tree, int place);

#endif
