/* Writes the request (request.h) that a helper is started with. */
#ifndef EXECSANDBOX_REQUEST_BUILD_H
#define EXECSANDBOX_REQUEST_BUILD_H

#include "failure.h"
#include "mounts.h"
#include "request.h"
#include "words.h"

struct request_input {
	struct request fixed; /* flags, times and limits; lists and offsets are filled in here */
	const struct words *argv;
	const struct words *environment;
	const struct words *launcher;  /* NULL: none */
	const struct words *arguments; /* NULL: none */
	const struct mounts *mounts;   /* NULL: nothing to claim or check */
	const char *cwd;
	const char *inner_path;     /* NULL: by descriptor */
	const char *home;           /* of a direct run, to be made; NULL: none */
	const char *filter_program; /* NULL: no filtering proxy */
	const struct request_proxy *proxies;
	size_t proxy_count;
};

/*
 * Returns a new close-on-exec descriptor of a memory file that holds the whole request,
 * or -1 with FAILURE.
 */
int request_build(const struct request_input *input, struct failure *failure);

#endif
