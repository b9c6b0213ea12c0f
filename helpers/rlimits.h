/* Resource limits of the command, by setrlimit(2) in its own process before exec. */
#ifndef EXECSANDBOX_RLIMITS_H
#define EXECSANDBOX_RLIMITS_H

#include <sys/resource.h>

#include "request.h"

/*
 * Applies the request's limits to the calling process. FILES is RLIMIT_NOFILE as the host
 * has it, restored where the request sets none.  Returns 0, or -1 with errno: EPERM where
 * a limit above the host's own hard limit is asked.
 */
int limits_apply(const struct request *request, const struct rlimit *files);

#endif
