/* The bubblewrap backend: the only file that knows bubblewrap's words is bwrap.c. */
#ifndef EXECSANDBOX_BWRAP_H
#define EXECSANDBOX_BWRAP_H

#include "failure.h"
#include "mounts.h"
#include "words.h"

struct bwrap_options {
	const char *program; /* absolute path of bwrap */
	const char *inner;   /* absolute path of the helper */
	bool process_namespace;
	bool network_namespace;
	bool own_view; /* the inner stage mounts; bubblewrap only makes namespaces */
};

struct bwrap_plan {
	struct words launcher;  /* program and its own command line */
	struct words arguments; /* what it reads from --args */
	const char *inner_path; /* where the launcher finds the helper; NULL: by descriptor */
	unsigned empty_files;   /* descriptors of empty files that the arguments name */
};

/*
 * Translates MOUNTS. Everything is in memory of ARENA or shared with MOUNTS and OPTIONS.
 * -1 with FAILURE where bubblewrap cannot take so much.
 */
int bwrap_plan(const struct mounts *mounts, const struct bwrap_options *options,
               struct arena *arena, struct bwrap_plan *out, struct failure *failure);

#endif
