/*
 * The private home of a run that has no view of its own: a directory of the host with the
 * command's HOME and TMPDIR in it, which is removed, and all that is in it, after the run.
 *
 * Whoever still has to do with the run holds a shared flock(2) on it, which dies with its
 * holder.  Depends on libc alone: the core uses it too.
 */
#ifndef EXECSANDBOX_HOME_H
#define EXECSANDBOX_HOME_H

#include <stdint.h>
#include <sys/types.h>

struct home {
	int parent;    /* O_PATH; -1 where there is none */
	int directory; /* carries the lock; -1 where there is none */
	dev_t device;
	ino_t inode;
	const char *name; /* the last component; points into the path given to home_make */
};

/* How long the helper may take, for whom it is the last thing to do. */
#define HOME_PATIENCE_NS (60 * (uint64_t)1000000000)

#define HOME_NONE ((struct home){ .parent = -1, .directory = -1 })

/*
 * Makes the directory at PATH (canonical, absolute, nothing there), and `home` and `tmp` in it,
 * for its owner alone.  The caller's umask must be 0.  Returns 0, or -1 with errno.
 */
int home_make(struct home *home, const char *path);

/* Removes what home_make made and what was added to it, where it still is. Idempotent. */
void home_remove(struct home *home);

/*
 * Removes the directory that a lost helper left at PATH, as far as that is done in PATIENCE
 * nanoseconds.  Returns 0 when it is gone, 1 when that takes longer or somebody of the run is
 * still there, -1 when it stays.
 */
int home_recover(const char *path, uint64_t patience);

#endif
