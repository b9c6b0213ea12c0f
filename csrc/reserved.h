/* Paths that no rule may name, since what is there inside is not what is there outside. */
#ifndef EXECSANDBOX_RESERVED_H
#define EXECSANDBOX_RESERVED_H

#include "failure.h"

/*
 * 0, or -1 with FAILURE where simplified absolute PATH, written as WRITTEN, is /dev or
 * /proc themselves, which are always the sandbox's own, or names a process.
 */
int reserved_check(const char *written, const char *path, struct failure *failure);

#endif
