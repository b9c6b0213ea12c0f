/*
 * One walk over a directory tree for all patterns at once.  It follows no link, holds
 * two descriptors however deep the tree is, and leaves out what no pattern can match.
 */
#ifndef EXECSANDBOX_GLOB_WALK_H
#define EXECSANDBOX_GLOB_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "glob.h"

enum glob_type { GLOB_TYPE_DIRECTORY, GLOB_TYPE_LINK, GLOB_TYPE_ELSE };

/* The caller's view of a directory of the walk; opaque here. */
struct glob_place {
	void *pointer;
	int number;
};

struct glob_entry {
	const char *path; /* relative to the root of the walk */
	const char *name; /* its last component */
	size_t name_length;
	enum glob_type type;
	struct glob_place place;  /* of the directory that it is in */
	uint32_t match;           /* lowest number of the patterns that match, or GLOB_NONE */
	uint32_t directory_match; /* the same if it were a directory: for what a link leads to */
};

struct glob_visitor {
	void *data;
	/* Something matches.  0, or -1 to end the walk. */
	int (*found)(void *data, const struct glob_entry *entry);
	/* Whether to walk directory ENTRY, and as which PLACE. */
	bool (*enter)(void *data, const struct glob_entry *entry, struct glob_place *place);
};

/*
 * Walks the directory open on ROOT (which stays open), whose path is DISPLAY, matching
 * paths relative to it, with PREFIX ("" or ending in a slash) before them.  Directories
 * deeper than MAX_DEPTH below it (-1: no limit) are not read.  0, or -1 with FAILURE, which
 * is filled in unless the visitor ended the walk.
 */
int glob_walk(const struct globs *globs, int root, const char *display, const char *prefix,
              int64_t max_depth, struct glob_place place, const struct glob_visitor *visitor,
              struct failure *failure);

#endif
