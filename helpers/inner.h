/*
 * The inner stage: inside the sandbox, first process of its namespaces.  It looks whether
 * the sandbox is what was asked for, locks it, starts the command as its child, reaps
 * whatever ends, and reports to the supervisor.  It ends everything when told to, and
 * when the supervisor is gone.
 */
#ifndef EXECSANDBOX_INNER_H
#define EXECSANDBOX_INNER_H

/* Runs with the INNER_* descriptors in place; returns the exit status. */
int inner_main(void);

#endif
