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

/*
 * Nobody of the run is left that could add to it.  If somebody else does, or it is larger than
 * anything that was meant to go with the run, an end must come: the helper has until then (a
 * host that closes a run takes over after five seconds), a host less, for it has other work.
 */
enum { HELPER_SECONDS = 60, HOST_SECONDS = 10 };

static const char *const places[] = { "home", "tmp" };

static uint64_t after(unsigned seconds)
{
	return clock_now() + (uint64_t)seconds * NS_PER_SECOND;
}

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

static int remove_until(const struct home *home, uint64_t deadline)
{
	/* Moved away: then it is not at our disposal any more. */
	if (!still_there(home))
		return 0;
	if (remove_tree(home->directory, deadline) < 0)
		return -1;
	return unlinkat(home->parent, home->name, AT_REMOVEDIR);
}

void home_remove(struct home *home)
{
	if (home->directory >= 0)
		remove_until(home, after(HELPER_SECONDS));
	close_home(home);
}

static int recover(struct home *home)
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
	return remove_until(home, after(HOST_SECONDS));
}

int home_recover(const char *path)
{
	struct home home = HOME_NONE;
	int result;

	home.parent = open_canonical_parent(path, &home.name);
	if (home.parent < 0)
		return errno == ENOENT ? 0 : -1;
	result = recover(&home);
	close_home(&home);
	return result;
}
