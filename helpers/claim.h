/*
 * Placeholders: directories that stand on the host where a protected name is
 * missing, so that there is something to mount over while a run lasts.
 *
 * Runs share a placeholder.  Each holds a shared flock(2) on the directory itself;
 * the last one gets the exclusive lock and removes it.  A lock dies with its holder,
 * so nothing goes stale, and there is no registry.  The mark that says "ours" is the
 * mode, given by mkdir(2) itself: there is no moment in which an unmarked one exists.
 *
 * Nothing here is removed that is not empty, marked and owned by us.  Depends on
 * libc alone: the core uses it too.
 */
#ifndef EXECSANDBOX_CLAIM_H
#define EXECSANDBOX_CLAIM_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define CLAIM_MODE 01755

struct claim {
	int parent;    /* O_PATH; -1 where nothing is held */
	int directory; /* carries the lock; -1 where nothing is held */
	dev_t device;  /* of what stands at the path */
	ino_t inode;
	const char *name; /* the last component; points into the path given to claim_take */
};

/*
 * Whether STATUS looks like a placeholder of ours (it must be empty besides).  A directory made
 * below a set-group-id one inherits that bit (mkdir(2)), so it does not count.
 */
static inline bool claim_is_marked(const struct stat *status)
{
	/* The mode comes first: hardly anything has it, and who we are is a call to the kernel. */
	return S_ISDIR(status->st_mode) && (status->st_mode & 07777 & ~(mode_t)S_ISGID) == CLAIM_MODE &&
	       status->st_uid == geteuid();
}

/* 1: nothing but "." and ".." in the directory; 0: something; -1: errno. Allocates nothing. */
int claim_is_empty(int directory);

enum { CLAIM_EXISTED, CLAIM_HELD };

/*
 * Makes or joins the placeholder at PATH (canonical, absolute, not "/").  The caller's
 * umask must be 0.  Returns CLAIM_HELD; CLAIM_EXISTED where a directory of someone
 * else's stands there (nothing is held, device and inode are filled); or -1 with errno:
 * ENOTDIR where it is no directory, EBUSY where others hold it exclusively.
 */
int claim_take(struct claim *claim, const char *path);

/*
 * Gives a held claim up: removes the placeholder where no other run holds it, or makes
 * it an ordinary directory of mode 0777 & ~MASK where somebody filled it meanwhile.
 * Idempotent.
 */
void claim_release(struct claim *claim, mode_t mask);

/*
 * Removes the placeholder that a lost helper left at PATH.  Returns 0 when nothing of
 * ours is there any more, 1 when another run holds it, -1 with errno.
 */
int claim_release_stale(const char *path);

#endif
