/* Starting the helper, which is all the host process ever starts. */
#ifndef EXECSANDBOX_SPAWN_H
#define EXECSANDBOX_SPAWN_H

#include <sys/types.h>

#include "failure.h"

/* What the helper gets, as SUPERVISOR_* in request.h numbers it. Nothing is taken over. */
struct spawn_descriptors {
	int control;
	int request;
	int input;  /* -1: /dev/null */
	int output; /* -1: /dev/null */
	int error;  /* -1: /dev/null */
};

/*
 * Starts PROGRAM with the one argument "supervise", an empty environment and all signals
 * blocked.  The calling thread is suspended until the program is executed (vfork(2), which
 * shares memory until then), so a large host pays no more than a small one.  *PID is the
 * caller's to reap; 0 where the start fails.
 */
int spawn_helper(const char *program, const struct spawn_descriptors *descriptors, pid_t *pid,
                 struct failure *failure);

#endif
