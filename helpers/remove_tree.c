#include "remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "close_keeping_errno.h"
#include "entry.h"

/* How many of our new names may be taken, one after the other. */
enum { RAISE_ATTEMPTS = 16 };

struct removal {
	int top;
	dev_t device; /* of all that is removed */
	uint64_t deadline;
	uint64_t number; /* of the next new name */
	bool progress;   /* something was removed, or came closer to the top, in this round */
	bool late;
};

/* ---- opening ---------------------------------------------------------------------- */

static int open_in(int parent, const char *name, int flags)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};

	return (int)syscall(SYS_openat2, parent, name, &how, sizeof how);
}

/* Where not even its owner may read it.  fchmod(2) takes no O_PATH descriptor, /proc does. */
static int open_unreadable(int parent, const char *name)
{
	char path[64];
	int place = open_in(parent, name, O_PATH);
	int fd = -1;

	if (place < 0)
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", place);
	if (chmod(path, 0700) == 0)
		fd = open_in(place, ".", O_RDONLY);
	close_keeping_errno(place);
	return fd;
}

int remove_tree_open(int parent, const char *name)
{
	struct stat status;
	int fd = open_in(parent, name, O_RDONLY);

	if (fd < 0 && errno == EACCES)
		fd = open_unreadable(parent, name);
	/* If the mode cannot be changed, what is in there is not ours to remove: that shows then. */
	if (fd >= 0 && fstat(fd, &status) == 0 && (status.st_mode & 0700) != 0700)
		fchmod(fd, 0700);
	return fd;
}

/* ---- removing --------------------------------------------------------------------- */

static bool is_directory(int parent, const struct entry *entry)
{
	struct stat status;

	if (entry->type != DT_UNKNOWN)
		return entry->type == DT_DIR;
	return fstatat(parent, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(status.st_mode);
}

/* Moves a directory that is not empty from PARENT to the top. */
static void raise_directory(struct removal *r, int parent, const char *name)
{
	char fresh[32];
	int attempt, fd;

	for (attempt = 0; attempt < RAISE_ATTEMPTS; attempt++) {
		snprintf(fresh, sizeof fresh, ".%llx", (unsigned long long)r->number++);
		if (renameat(parent, name, r->top, fresh) == 0) {
			r->progress = true;
			return;
		}
		if (errno == EACCES && attempt == 0) {
			/* Its ".." changes, for which it must be writable (rename(2)); opened, it is. */
			fd = remove_tree_open(parent, name);
			if (fd >= 0)
				close(fd);
		} else if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) {
			return;
		}
	}
}

/* Calls DEAL for each entry of DIRECTORY as it is now. */
static void each_entry(struct removal *r, int directory,
                       void (*deal)(struct removal *, int, const struct entry *))
{
	_Alignas(struct entry) char buffer[4096];
	long length, at;

	if (lseek(directory, 0, SEEK_SET) < 0)
		return;
	while (!r->late && (length = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0) {
		for (at = 0; at < length && !r->late;) {
			const struct entry *entry = (const struct entry *)(const void *)(buffer + at);

			at += entry->length;
			if (strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0)
				deal(r, directory, entry);
			r->late = clock_now() >= r->deadline;
		}
	}
}

/* In a directory at the top: what is not empty is raised. */
static void remove_inner(struct removal *r, int parent, const struct entry *entry)
{
	bool directory = is_directory(parent, entry);

	if (unlinkat(parent, entry->name, directory ? AT_REMOVEDIR : 0) == 0)
		r->progress = true;
	else if (directory && (errno == ENOTEMPTY || errno == EEXIST))
		raise_directory(r, parent, entry->name);
}

static void remove_outer(struct removal *r, int parent, const struct entry *entry)
{
	bool directory = is_directory(parent, entry);
	struct stat status;
	int fd;

	if (unlinkat(parent, entry->name, directory ? AT_REMOVEDIR : 0) == 0) {
		r->progress = true;
		return;
	}
	if (!directory || (errno != ENOTEMPTY && errno != EEXIST))
		return;
	fd = remove_tree_open(parent, entry->name);
	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && status.st_dev == r->device)
		each_entry(r, fd, remove_inner);
	close(fd);
	if (unlinkat(parent, entry->name, AT_REMOVEDIR) == 0)
		r->progress = true;
}

static void look_for_any(struct removal *r, int directory, const struct entry *entry)
{
	(void)directory;
	(void)entry;
	r->number++;
}

static bool is_empty(struct removal *r)
{
	r->number = 0;
	r->late = false;
	each_entry(r, r->top, look_for_any);
	return r->number == 0;
}

/*
 * A tree is flattened while it is removed: a directory two levels down comes to the top, so
 * that neither its depth nor the length of its path matters, and nothing has to be remembered.
 */
int remove_tree(int directory, uint64_t deadline)
{
	struct removal r = { .top = directory, .deadline = deadline, .number = clock_now() };
	struct stat status;
	bool late;

	if (fstat(directory, &status) < 0)
		return -1;
	r.device = status.st_dev;
	if ((status.st_mode & 0700) != 0700 && fchmod(directory, 0700) < 0)
		return -1;
	do {
		r.progress = false;
		each_entry(&r, directory, remove_outer);
	} while (r.progress && !r.late);
	late = r.late;
	if (is_empty(&r))
		return 0;
	return late ? 1 : -1;
}
