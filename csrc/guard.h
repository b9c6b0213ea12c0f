/*
 * How a name that is missing on the host is kept missing while a command may write
 * around it.  Everything here is about paths of the host.
 */
#ifndef EXECSANDBOX_GUARD_H
#define EXECSANDBOX_GUARD_H

#include <limits.h>
#include <stdbool.h>

#include "arena.h"
#include "failure.h"
#include "policy.h"

enum guard {
	GUARD_NONE,        /* the command cannot make it */
	GUARD_PLACEHOLDER, /* something can stand there, to be mounted over */
	GUARD_FREEZE,      /* its nearest directory must stay as it is: nobody can add to it now */
	GUARD_REFUSE,      /* a file is in the way, which the command could replace */
};

/* Whether PATH is in a filesystem where the kernel alone makes files, whoever asks. */
bool guard_kernels_own(const char *path);

/*
 * How to keep PATH, canonical and missing, from being made by a command that may write
 * below ROOT.  The nearest existing directory on the way is written to DIRECTORY.
 */
enum guard guard_for(const char *path, const char *root, char directory[PATH_MAX]);

/*
 * The names in DIRECTORY that the caller may be able to change, by themselves or below
 * them.  Where they cannot be listed but used: -1 with FAILURE.
 */
int guard_list(const char *directory, struct arena *arena, struct strings *out,
               struct failure *failure);

#endif
