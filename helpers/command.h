/* The command's own process, from vfork to exec. */
#ifndef EXECSANDBOX_COMMAND_H
#define EXECSANDBOX_COMMAND_H

#include <sys/resource.h>
#include <sys/types.h>

#include "request_view.h"

/* Why there was no exec. */
struct command_failure {
	int errnum; /* 0: there was one */
	const char *stage;
};

/* What is prepared before the vfork, so that nothing is allocated after it. */
struct command_plan {
	const struct request_view *view;
	char **argv;
	char **environment;
	const char *search_path; /* PATH of the command's environment */
	mode_t mask;             /* the host's umask */
	struct rlimit files;     /* the host's RLIMIT_NOFILE */
	int control;             /* to the supervisor */
	struct command_failure *failure;
};

/* Fills all but mask, files, control and failure. 0; -1 where memory is exhausted. */
int command_prepare(struct command_plan *plan, const struct request_view *view);

/*
 * In the child of a vfork(2), which shares the parent's memory and holds it up until the
 * exec: becomes the command, or says in plan->failure why not and exits.
 */
_Noreturn void command_become(const struct command_plan *plan);

#endif
