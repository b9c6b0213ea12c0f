/* Standard input of a command: what it reads from, and how a host writes to it. */
#ifndef EXECSANDBOX_INPUT_H
#define EXECSANDBOX_INPUT_H

#include <stddef.h>
#include <sys/types.h>

#include "failure.h"

/*
 * Each opens what the command will read and returns its descriptor, close-on-exec and above
 * 2, which the caller owns; or -1 with FAILURE.
 */
int input_from_string(const char *bytes, size_t length, struct failure *failure);
int input_from_file(const char *path, struct failure *failure);
int input_inherited(struct failure *failure);

/* A pipe: *WRITER, nonblocking, is the caller's as well. */
int input_pipe(int *writer, struct failure *failure);

/*
 * write(2) of as much as fits now: 0 where nothing does; -1 with errno, EPIPE where nobody
 * reads any more.  No SIGPIPE is left to the host, whatever it does about that signal.
 */
ssize_t input_write(int writer, const void *bytes, size_t length);

#endif
