/*
 * Ending every descendant of the calling process, where no PID namespace does it.
 *
 * The caller must be a child subreaper (prctl(2)): then every process that descends
 * from it stays a descendant, however often it forks and calls setsid.  SIGCHLD must
 * be blocked.
 */
#ifndef EXECSANDBOX_SWEEP_H
#define EXECSANDBOX_SWEEP_H

#include <sys/resource.h>
#include <sys/types.h>

/* Called for each child that was reaped. */
typedef void (*sweep_reaped)(void *context, pid_t pid, int status, const struct rusage *usage);

/* Reaps what has ended. Returns 1 while children are left, 0 when there are none. */
int sweep_reap(sweep_reaped reaped, void *context);

/* Sends SIGNUM, then CONT, to every descendant. */
void sweep_signal(int signum);

/*
 * Kills and reaps until no child is left. KNOWN is a child to kill where /proc cannot be
 * read (0: none).  Returns how many ended by the KILL sent here.
 */
unsigned sweep_kill(pid_t known, sweep_reaped reaped, void *context);

#endif
