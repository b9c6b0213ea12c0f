#include "home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "canonical.h"
#include "clock.h"
#include "close_keeping_errno.h"
#include "remove_tree.h"

static const char *const places[] = { "home", "tmp" };

static void close_home(struct home *home)
{
	if (home->directory >= 0)
		close_keeping_errno(home->directory);
	if (home->parent >= 0)
		close_keeping_errno(home->parent);
	*home = HOME_NONE;
}

/* What has its name in the parent is the open directory, not what a command put in its place. */
static bool still_there(const struct home *home)
{
	struct stat status;

	return fstatat(home->parent, home->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       status.st_dev == home->device && status.st_ino == home->inode;
}

/* The mode that mkdir(2) was given may have been changed by the parent's ACL and set-group-id. */
static int furnish(struct home *home)
{
	struct stat status;
	size_t i;

	home->directory =
		openat(home->parent, home->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (home->directory < 0 || fchmod(home->directory, 0700) < 0 ||
	    fstat(home->directory, &status) < 0)
		return -1;
	home->device = status.st_dev;
	home->inode = status.st_ino;
	/* Where there are no locks, as on some network filesystems, only a lost helper needs them. */
	flock(home->directory, LOCK_SH | LOCK_NB);
	for (i = 0; i < sizeof places / sizeof *places; i++)
		if (mkdirat(home->directory, places[i], 0700) < 0)
			return -1;
	return 0;
}

int home_make(struct home *home, const char *path)
{
	int error;

	*home = HOME_NONE;
	home->parent = open_canonical_parent(path, &home->name);
	if (home->parent < 0)
		return -1;
	if (mkdirat(home->parent, home->name, 0700) < 0) {
		close_home(home);
		return -1;
	}
	if (furnish(home) == 0)
		return 0;
	error = errno;
	if (home->directory < 0)
		unlinkat(home->parent, home->name, AT_REMOVEDIR);
	home_remove(home);
	errno = error;
	return -1;
}

/* As home_recover returns.  Nobody of the run adds to it, but an end must come if others do. */
static int remove_all(const struct home *home, uint64_t patience)
{
	int result;

	/* Moved away: then it is not at our disposal any more. */
	if (!still_there(home))
		return 0;
	result = remove_tree(home->directory, clock_now() + patience);
	return result != 0 ? result : unlinkat(home->parent, home->name, AT_REMOVEDIR);
}

void home_remove(struct home *home)
{
	if (home->directory >= 0)
		remove_all(home, HOME_PATIENCE_NS);
	close_home(home);
}

static int recover(struct home *home, uint64_t patience)
{
	struct stat status;

	home->directory = remove_tree_open(home->parent, home->name);
	if (home->directory < 0)
		return errno == ENOENT ? 0 : -1;
	if (fstat(home->directory, &status) < 0 || status.st_uid != geteuid())
		return -1;
	home->device = status.st_dev;
	home->inode = status.st_ino;
	if (flock(home->directory, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return 1;
	return remove_all(home, patience);
}

int home_recover(const char *path, uint64_t patience)
{
	struct home home = HOME_NONE;
	int result;

	home.parent = open_canonical_parent(path, &home.name);
	if (home.parent < 0)
		return errno == ENOENT ? 0 : -1;
	result = recover(&home, patience);
	close_home(&home);
	return result;
}
