/* Who this process is to the kernel, whatever a user namespace calls it. */
#ifndef EXECSANDBOX_IDENTITY_H
#define EXECSANDBOX_IDENTITY_H

#include <stdbool.h>

/*
 * Whether the effective user is uid 0 of the initial user namespace.  Such a user keeps
 * two powers in any namespace and without any capability: limits on processes do not
 * bind it (setrlimit(2)), and files of the kernel's that belong to root, the sysctls
 * below /proc/sys among them, are its own to write.
 */
bool identity_is_real_root(void);

#endif
