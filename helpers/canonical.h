/*
 * Opening a canonical path without following any symbolic link.
 *
 * A path that was canonical when the policy was resolved may have had a component
 * replaced by a link since then.  openat2(2) with RESOLVE_NO_SYMLINKS fails with
 * ELOOP in that case, for every component, in one atomic walk.
 */
#ifndef EXECSANDBOX_CANONICAL_H
#define EXECSANDBOX_CANONICAL_H

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns a close-on-exec descriptor, or -1 with errno (ELOOP: a link is on the way). */
static inline int open_canonical(const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

/*
 * The same for the directory that holds canonical PATH, as O_PATH; *NAME is set to the last
 * component, in PATH.
 */
static inline int open_canonical_parent(const char *path, const char **name)
{
	char parent[4096];
	const char *slash = strrchr(path, '/');
	size_t length;

	if (path[0] != '/' || slash[1] == '\0' || strcmp(slash, "/.") == 0 ||
	    strcmp(slash, "/..") == 0) {
		errno = EINVAL;
		return -1;
	}
	length = slash == path ? 1 : (size_t)(slash - path);
	if (length >= sizeof parent) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(parent, path, length);
	parent[length] = '\0';
	*name = slash + 1;
	return open_canonical(parent, O_PATH | O_DIRECTORY);
}

#endif
