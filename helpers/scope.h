/* Landlock's scope for abstract unix sockets, which no mount and no filter covers. */
#ifndef EXECSANDBOX_SCOPE_H
#define EXECSANDBOX_SCOPE_H

/* no_new_privs must be set. Returns 0, or -1 with errno: ENOSYS before ABI 6 (Linux 6.12). */
int scope_abstract_sockets(void);

#endif
