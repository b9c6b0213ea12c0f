/* What the running kernel's Landlock can do (landlock(7)); headers may be older than it. */
#ifndef EXECSANDBOX_LANDLOCK_H
#define EXECSANDBOX_LANDLOCK_H

/* The ABI that scopes abstract unix sockets and signals. */
#define LANDLOCK_ABI_SCOPES 6

/* The ABI version, or 0 where Landlock is not built or not enabled. */
int landlock_abi(void);

#endif
