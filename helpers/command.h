/* The command's own process, from fork to exec. */
#ifndef EXECSANDBOX_COMMAND_H
#define EXECSANDBOX_COMMAND_H

#include <sys/resource.h>
#include <sys/types.h>

#include "request_view.h"

/* What is prepared before the fork, so that nothing is allocated after it. */
struct command_plan {
	const struct request_view *view;
	char **argv;
	char **environment;
	const char *search_path; /* PATH of the command's environment */
	mode_t mask;             /* the host's umask */
	struct rlimit files;     /* the host's RLIMIT_NOFILE */
	int control;             /* to the supervisor */
	int report;              /* where struct command_failure goes; close-on-exec */
};

struct command_failure {
	int errnum;
	char stage[32];
};

/* Fills all but mask, files, control and report. 0; -1 where memory is exhausted. */
int command_prepare(struct command_plan *plan, const struct request_view *view);

/* In the child: becomes the command, or reports why not and exits. */
_Noreturn void command_become(const struct command_plan *plan);

#endif
