#include "guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "path.h"

/* Cuts PATH to its parent directory; false at the root. */
static bool to_parent(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash == NULL || path[1] == '\0')
		return false;
	slash[slash == path] = '\0';
	return true;
}

bool guard_kernels_own(const char *path)
{
	struct statfs status;

	return statfs(path, &status) == 0 &&
	       (status.f_type == SYSFS_MAGIC || status.f_type == PROC_SUPER_MAGIC ||
	        status.f_type == SECURITYFS_MAGIC || status.f_type == DEBUGFS_MAGIC ||
	        status.f_type == TRACEFS_MAGIC);
}

/*
 * Whether DIRECTORY, or one that it lies in, can be renamed by whoever may write below ROOT:
 * rename(2) asks for the parent's permission, not for the directory's own.
 */
static bool is_movable(const char *directory, const char *root)
{
	char parent[PATH_MAX];

	memcpy(parent, directory, strlen(directory) + 1);
	while (to_parent(parent) && path_is_within(parent, root))
		if (path_changeable(AT_FDCWD, parent))
			return true;
	return false;
}

enum guard guard_for(const char *path, const char *root, char directory[PATH_MAX])
{
	bool in_file = false, found;
	struct stat status;

	if (strlen(path) >= PATH_MAX)
		return GUARD_NONE;
	memcpy(directory, path, strlen(path) + 1);
	do {
		if (!to_parent(directory))
			return GUARD_NONE;
		found = lstat(directory, &status) == 0;
		in_file = in_file || (found && !S_ISDIR(status.st_mode));
	} while (!found || !S_ISDIR(status.st_mode));
	/* Below a root that is no directory there will be nothing: it stays mounted. */
	if (!path_is_within(directory, root) || guard_kernels_own(directory))
		return GUARD_NONE;
	if (faccessat(AT_FDCWD, directory, W_OK, AT_EACCESS) == 0)
		return in_file ? GUARD_REFUSE : GUARD_PLACEHOLDER;
	return path_changeable(AT_FDCWD, directory) || is_movable(directory, root) ? GUARD_FREEZE
	                                                                           : GUARD_NONE;
}

/* Whether the caller may be able to write NAME in PARENT, or something below it. */
static bool is_of_use(int parent, const char *name)
{
	struct stat status;

	if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (S_ISDIR(status.st_mode))
		return true;
	/* A read-only mount keeps nobody from writing to devices, FIFOs and sockets. */
	return S_ISREG(status.st_mode) && path_changeable(parent, name);
}

static int append(struct strings *list, struct arena *arena, const char *name)
{
	if ((list->count & (list->count + 1)) == 0) { /* grow at 0, 1, 3, 7, … */
		const char **items = arena_array(arena, list->count * 2 + 1, sizeof *items);
		if (items == NULL)
			return -1;
		if (list->count > 0)
			memcpy(items, list->items, list->count * sizeof *items);
		list->items = items;
	}
	list->items[list->count] = arena_copy(arena, name, strlen(name));
	return list->items[list->count++] == NULL ? -1 : 0;
}

int guard_list(const char *directory, struct arena *arena, struct strings *out,
               struct failure *failure)
{
	DIR *stream = opendir(directory);
	const struct dirent *entry;
	int result = 0;

	/* Who may not even search it cannot use what is in it. */
	if (stream == NULL && errno == EACCES && faccessat(AT_FDCWD, directory, X_OK, AT_EACCESS) < 0)
		return 0;
	if (stream == NULL && errno == ENOMEM)
		return failure_memory(failure);
	if (stream == NULL)
		return failure_policy(failure,
		                      "what is in '%s' cannot be kept writable while nothing may be added "
		                      "to it: the directory cannot be listed: %s",
		                      directory, strerror(errno));
	while (result == 0 && (entry = readdir(stream)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    !is_of_use(dirfd(stream), entry->d_name))
			continue;
		if (append(out, arena, entry->d_name) < 0)
			result = failure_memory(failure);
	}
	closedir(stream);
	return result;
}
