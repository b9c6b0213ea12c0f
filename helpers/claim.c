#include "claim.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "canonical.h"
#include "entry.h"

enum {
	TAKE_ATTEMPTS = 500, /* with 2 ms between them where others hold it: one second */
	PAUSE_NS = 2000000,
};

int claim_is_empty(int directory)
{
	_Alignas(struct entry) char buffer[1024];
	long length, at;

	if (lseek(directory, 0, SEEK_SET) < 0)
		return -1;
	while ((length = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0) {
		for (at = 0; at < length;) {
			const struct entry *entry = (const struct entry *)(const void *)(buffer + at);

			if (strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0)
				return 0;
			at += entry->length;
		}
	}
	return length < 0 ? -1 : 1;
}

/* Whether NAME in PARENT still is the open DIRECTORY, marked as ours. */
static bool still_there(int parent, const char *name, int directory)
{
	struct stat here, there;

	return fstat(directory, &here) == 0 &&
	       fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && here.st_dev == there.st_dev &&
	       here.st_ino == there.st_ino && claim_is_marked(&here);
}

/*
 * A directory that was just made may lack the mark: a default ACL of the parent takes
 * permissions away (acl(5)), and some filesystems have no sticky bit.
 */
static int mark(int parent, const char *name, int directory)
{
	struct stat status;

	if (fstat(directory, &status) < 0)
		return -1;
	if (claim_is_marked(&status))
		return 0;
	if (status.st_uid == geteuid() && fchmod(directory, CLAIM_MODE) == 0 &&
	    fstat(directory, &status) == 0 && claim_is_marked(&status))
		return 0;
	unlinkat(parent, name, AT_REMOVEDIR);
	errno = EOPNOTSUPP;
	return -1;
}

/* One attempt; -2 asks for another one. */
static int take_once(struct claim *claim)
{
	struct stat status;
	bool made = mkdirat(claim->parent, claim->name, CLAIM_MODE) == 0;
	int saved;

	if (!made) {
		if (errno != EEXIST)
			return -1;
		if (fstatat(claim->parent, claim->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? -2 : -1;
		if (!S_ISDIR(status.st_mode)) {
			errno = ENOTDIR;
			return -1;
		}
		claim->device = status.st_dev;
		claim->inode = status.st_ino;
		if (!claim_is_marked(&status))
			return CLAIM_EXISTED;
	}
	claim->directory =
		openat(claim->parent, claim->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (claim->directory < 0)
		return errno == ENOENT ? -2 : -1;
	if (made && mark(claim->parent, claim->name, claim->directory) < 0)
		return -1;
	if (flock(claim->directory, LOCK_SH | LOCK_NB) < 0) {
		saved = errno;
		close(claim->directory);
		claim->directory = -1;
		if (saved == EWOULDBLOCK) {
			/* The last holder is about to remove it. */
			nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
			errno = EBUSY;
			return -2;
		}
		errno = saved;
		return -1;
	}
	/* Only what still has its name under the lock is protected by the lock. */
	if (!still_there(claim->parent, claim->name, claim->directory) ||
	    fstat(claim->directory, &status) < 0) {
		close(claim->directory);
		claim->directory = -1;
		errno = EBUSY;
		return -2;
	}
	claim->device = status.st_dev;
	claim->inode = status.st_ino;
	return claim_is_empty(claim->directory) == 1 ? CLAIM_HELD : CLAIM_EXISTED;
}

static void close_claim(struct claim *claim)
{
	if (claim->directory >= 0)
		close(claim->directory);
	if (claim->parent >= 0)
		close(claim->parent);
	claim->directory = claim->parent = -1;
}

int claim_take(struct claim *claim, const char *path)
{
	int result = -2, saved, attempt;

	memset(claim, 0, sizeof *claim);
	claim->directory = -1;
	claim->parent = open_canonical_parent(path, &claim->name);
	if (claim->parent < 0)
		return -1;
	for (attempt = 0; attempt < TAKE_ATTEMPTS && result == -2; attempt++)
		result = take_once(claim);
	if (result == CLAIM_HELD)
		return result;
	saved = errno;
	close_claim(claim);
	errno = saved;
	return result == CLAIM_EXISTED ? CLAIM_EXISTED : -1;
}

/* The last holder's part, under the exclusive lock. */
static void remove_placeholder(int parent, const char *name, int directory, mode_t mask)
{
	struct stat status;

	if (!still_there(parent, name, directory))
		return;
	if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
		return;
	/* rmdir(2): either of the two says that it is not empty. */
	if ((errno == ENOTEMPTY || errno == EEXIST) && fstat(directory, &status) == 0)
		fchmod(directory, (0777 & ~mask) | (status.st_mode & S_ISGID));
}

void claim_release(struct claim *claim, mode_t mask)
{
	/*
	 * Changing a lock gives the old one up first (flock(2)): of several that release
	 * at once, the one that looks last finds no other.
	 */
	if (claim->directory >= 0 && flock(claim->directory, LOCK_EX | LOCK_NB) == 0)
		remove_placeholder(claim->parent, claim->name, claim->directory, mask);
	close_claim(claim);
}

int claim_release_stale(const char *path)
{
	struct claim claim = { .parent = -1, .directory = -1 };
	struct stat status;
	int result = 0;

	claim.parent = open_canonical_parent(path, &claim.name);
	if (claim.parent < 0)
		return errno == ENOENT ? 0 : -1;
	if (fstatat(claim.parent, claim.name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		result = errno == ENOENT ? 0 : -1;
	} else if (claim_is_marked(&status)) {
		claim.directory =
			openat(claim.parent, claim.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (claim.directory < 0)
			result = errno == ENOENT ? 0 : -1;
		else if (flock(claim.directory, LOCK_EX | LOCK_NB) < 0)
			result = errno == EWOULDBLOCK ? 1 : -1;
		else if (still_there(claim.parent, claim.name, claim.directory) &&
		         unlinkat(claim.parent, claim.name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY &&
		         errno != EEXIST && errno != ENOENT)
			result = -1;
	}
	close_claim(&claim);
	return result;
}
