#include "mount_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "close_keeping_errno.h"

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

/* From linux/mount.h, which cannot be included beside sys/mount.h everywhere. */
enum {
	TREE_CLONE = 1,          /* OPEN_TREE_CLONE */
	TREE_RECURSIVE = 0x8000, /* AT_RECURSIVE */
	MOVE_FROM_EMPTY = 0x04,  /* MOVE_MOUNT_F_EMPTY_PATH */
	MOVE_TO_EMPTY = 0x40,    /* MOVE_MOUNT_T_EMPTY_PATH */
	FILESYSTEM_CLOEXEC = 1,  /* FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC */
	CONFIGURE_FLAG = 0,      /* FSCONFIG_SET_FLAG */
	CONFIGURE_STRING = 1,    /* FSCONFIG_SET_STRING */
	CONFIGURE_CREATE = 6,    /* FSCONFIG_CMD_CREATE */
};

/* struct mount_attr */
struct attributes {
	uint64_t set;
	uint64_t clear;
	uint64_t propagation;
	uint64_t userns;
};

int mount_set(int fd, int recursive, uint64_t set)
{
	struct attributes attributes = { .set = set, .propagation = MS_PRIVATE };

	return (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | (recursive ? TREE_RECURSIVE : 0),
	                    &attributes, sizeof attributes);
}

int mount_clone(int fd, uint64_t set)
{
	int tree = (int)syscall(SYS_open_tree, fd, "",
	                        AT_EMPTY_PATH | TREE_CLONE | TREE_RECURSIVE | O_CLOEXEC);

	if (tree >= 0 && mount_set(tree, 1, set) < 0) {
		close_keeping_errno(tree);
		return -1;
	}
	return tree;
}

static int configure(int filesystem, const struct mount_option *options)
{
	for (; options->name != NULL; options++) {
		unsigned command = options->value == NULL ? CONFIGURE_FLAG : CONFIGURE_STRING;

		if (syscall(SYS_fsconfig, filesystem, command, options->name, options->value, 0) < 0)
			return -1;
	}
	return (int)syscall(SYS_fsconfig, filesystem, CONFIGURE_CREATE, NULL, NULL, 0);
}

int mount_fresh(const char *type, const struct mount_option *options, uint64_t set)
{
	int filesystem = (int)syscall(SYS_fsopen, type, FILESYSTEM_CLOEXEC);
	int tree = -1;

	if (filesystem < 0)
		return -1;
	if (configure(filesystem, options) == 0)
		tree = (int)syscall(SYS_fsmount, filesystem, FILESYSTEM_CLOEXEC, set);
	close_keeping_errno(filesystem);
	return tree;
}

int mount_attach(int tree, int place)
{
	return (int)syscall(SYS_move_mount, tree, "", place, "", MOVE_FROM_EMPTY | MOVE_TO_EMPTY);
}
