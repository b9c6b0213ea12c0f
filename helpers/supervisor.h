/*
 * The supervisor: one per run, outside the sandbox.  It owns the command's life: it makes
 * the placeholders, starts the launcher, drains the output, keeps the deadline, ends and
 * reaps what is left, removes what the run made, and reports to the core.
 */
#ifndef EXECSANDBOX_SUPERVISOR_H
#define EXECSANDBOX_SUPERVISOR_H

/* Runs with the SUPERVISOR_* descriptors in place; returns the exit status. */
int supervisor_main(void);

#endif
