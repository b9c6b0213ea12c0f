/* The filtering proxy (filter_wire.h), a program of its own that the supervisor starts. */
#ifndef EXECSANDBOX_FILTERING_H
#define EXECSANDBOX_FILTERING_H

#include <sys/types.h>

/*
 * Starts PROGRAM with the memory files CONFIG and REPORT, and sends it the COUNT LISTENERS; all
 * of them stay the caller's.  Returns its process id and, in CONTROL, what it ends with; or
 * -1 with errno.
 */
pid_t filtering_start(const char *program, int config, int report, const int *listeners,
                      unsigned count, int *control);

#endif
