/* How a run ends before its command does, or instead of it. */
#ifndef EXECSANDBOX_ENDING_H
#define EXECSANDBOX_ENDING_H

#include "request.h"
#include "supervisor_state.h"

/* Notes why nothing was launched. The first failure counts; none does once the command has run. */
__attribute__((format(printf, 4, 5))) void ending_fail(struct supervisor *self, const char *stage,
                                                       int errnum, const char *format, ...);

/*
 * Timeout, cancel: connections outside are closed; TERM, the grace, KILL.  A second one does
 * not prolong the grace of the first.
 */
void ending_stop(struct supervisor *self, enum ending ending);

/* As a cancel, but without any grace, also where one is running. */
void ending_cut(struct supervisor *self);

/* KILL, now, by the inner stage where there is one. */
void ending_now(struct supervisor *self);

/* KILL from outside, whatever the inner stage does: everything that descends from us. */
void ending_from_outside(struct supervisor *self);

/* The control socket has ended: nobody wants to know, and everything goes. */
void ending_host_gone(struct supervisor *self);

/* Notes a child of ours that was reaped; a sweep_reaped of CONTEXT, the supervisor. */
void ending_reaped(void *context, pid_t pid, int status, const struct rusage *usage);

#endif
