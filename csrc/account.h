/* The home directory of an account, as the user databases have it. */
#ifndef EXECSANDBOX_ACCOUNT_H
#define EXECSANDBOX_ACCOUNT_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Writes the home of USER to the SIZE bytes at BUFFER and returns it; NULL with errno 0 where
 * no database has such an account, or with an errno where it could not be found out.
 */
const char *account_home(uid_t user, char *buffer, size_t size);

#endif
