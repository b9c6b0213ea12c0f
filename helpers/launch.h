/* Starting the launcher, or the inner stage itself where there is none. */
#ifndef EXECSANDBOX_LAUNCH_H
#define EXECSANDBOX_LAUNCH_H

#include <sys/resource.h>
#include <sys/types.h>

#include "request_view.h"

/* What is taken once, before anything else is opened: see launch_prepare. */
struct launch {
	int program;   /* INNER_PROGRAM: the helper itself */
	int arguments; /* INNER_ARGUMENTS: what the launcher reads from --args */
	char **words;  /* the launcher's command line */
	mode_t mask;   /* the host's umask */
	struct rlimit files;
	/* the child's ends */
	int control;
	int output;
	int error;            /* equal to output where merged */
	int words_of_its_own; /* the launcher's standard error */
	int errnum;           /* why the launcher could not be executed */
};

/*
 * Opens program and arguments, which must get the numbers that the launcher will know
 * them by: call it while SUPERVISOR_FIRST_FREE is free.  Returns 0, or -1 with errno.
 */
int launch_prepare(struct launch *launch, const struct request_view *view);

/*
 * Starts the child.  Returns its process id; or -1 with errno where there is none, or
 * it could not be executed (launch->errnum is set then, and it is reaped).
 */
pid_t launch_start(struct launch *launch, const struct request_view *view);

#endif
