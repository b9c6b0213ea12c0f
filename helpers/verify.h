/*
 * Is the sandbox the one that was asked for?  Looked at from inside, before anything
 * untrusted runs, so that a launcher that mounts less than it was told (another version,
 * a race with the host's mounts, a bug) ends the run instead of opening it.
 */
#ifndef EXECSANDBOX_VERIFY_H
#define EXECSANDBOX_VERIFY_H

#include <stddef.h>

#include "request_view.h"

/* 0; or -1 with TEXT saying what is wrong. */
int verify_process(const struct request_view *view, char *text, size_t size);
int verify_checks(const struct request_view *view, char *text, size_t size);

#endif
