/*
 * The view that a policy describes, as an ordered list of mounts, in words that are
 * still nobody's backend: bwrap.c turns the list into arguments, `sandbox.plan` shows
 * it, and the inner stage checks it by object before the command may run.
 */
#ifndef EXECSANDBOX_MOUNTS_H
#define EXECSANDBOX_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arena.h"
#include "failure.h"
#include "policy.h"
#include "resolve.h"

enum mount_kind {
	MOUNT_BASE,           /* a fresh root directory, read-only in the end */
	MOUNT_BIND_READ,      /* the host's `source`, read-only with all mounts below it */
	MOUNT_BIND_WRITE,     /* the host's `source` */
	MOUNT_BIND_DEVICE,    /* the host's `source`, device nodes usable */
	MOUNT_PIN,            /* a directory kept from being renamed; goes beneath a writable bind */
	MOUNT_MASK_DIRECTORY, /* nothing to see: mode 0000, or 0111 where something below is re-opened */
	MOUNT_MASK_FILE,      /* an empty regular file of mode 0000 */
	MOUNT_PRIVATE,        /* a fresh writable directory that ends with the run */
	MOUNT_DEV,            /* a fresh /dev with the harmless nodes */
	MOUNT_PROC,           /* the /proc of the sandbox's own process namespace */
	MOUNT_DIRECTORY,      /* a directory made in a mask, on the way to something re-opened */
	MOUNT_LINK,           /* a symbolic link made in a mask, with the text `source` */
};

struct mount {
	enum mount_kind kind;
	const char *path;   /* canonical, as the command sees it */
	const char *source; /* canonical host path; the text of a link; NULL for fresh ones */
	unsigned mode;      /* permissions of fresh directories */
	dev_t device;       /* of the source, to check the view by object; 0, 0: unknown */
	ino_t inode;
	dev_t place_device; /* of what is mounted over on the host; 0, 0: nothing, or not known */
	ino_t place_inode;
	const char *claim; /* where a placeholder must be on the host while the run lasts; or NULL */
	bool made;         /* the place is not on the host: it is made in a fresh directory */
	bool checked;      /* take part in the check of the finished view */
	bool is_file;      /* what is mounted is no directory */
	bool reopened;     /* (masks, base) something below is visible again */
};

struct mounts {
	struct mount *items; /* in the order of mounting */
	size_t count;
	size_t capacity;
	size_t masks;  /* masks among them */
	bool own_proc; /* /proc is the sandbox's own, or the host's where processes are shared */
};

/* What the host and the policy leave open for mounts_build to know. */
struct mounts_options {
	bool process_namespace; /* false: /proc, if wanted, is the host's */
	bool proc_mountable;    /* this host lets a sandbox mount its own /proc */
	bool real_root;         /* the kernel's files below /proc are the command's to write */
	bool mask_sockets;      /* no host socket but those listed may be in the view */
};

/*
 * Builds the list from RESOLVED (which must not be `refused`) in memory of ARENA.
 * Strings are shared with RESOLVED, which must live as long. 0, or -1 with FAILURE.
 */
int mounts_build(const struct policy *policy, const struct resolved *resolved,
                 const struct mounts_options *options, struct arena *arena, struct mounts *out,
                 struct failure *failure);

/*
 * Fills FAILURE for MOUNTS that are too many; FORMAT completes "the policy needs N mounts,
 * which are …".  Returns -1.
 */
int mounts_too_many(const struct mounts *mounts, struct arena *arena, struct failure *failure,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The name of KIND as plans show it, e.g. "bind-read". */
const char *mount_kind_name(enum mount_kind kind);

/* Shared with mounts_sockets.c: appends one mount; NULL when memory is exhausted. */
struct mount *mounts_add(struct mounts *mounts, struct arena *arena, enum mount_kind kind,
                         const char *path);

/*
 * Finds the host's unix sockets that have a name in the filesystem, and returns their
 * canonical paths in ARENA, sorted, each once; those in ALLOWED are left out.
 */
int mounts_find_sockets(const struct strings *allowed, struct arena *arena, struct strings *out,
                        struct failure *failure);

#endif
