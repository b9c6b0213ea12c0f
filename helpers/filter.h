/*
 * The system call filter of the sandbox: what kernel surface the command does not get.
 * The rules are in generate/filter_build.c.
 */
#ifndef EXECSANDBOX_FILTER_H
#define EXECSANDBOX_FILTER_H

#include <linux/filter.h>

/* A program made when the helper was built. */
struct filter {
	unsigned flags; /* of enum request_flag, those that FILTER_FLAGS in filter.c keeps */
	unsigned count;
	const struct sock_filter *instructions;
};

/* Generated: one for every combination of flags. */
extern const struct filter filters[];
extern const unsigned filter_count;

/*
 * Installs the filter that FLAGS (enum request_flag) ask for in the calling process, for
 * it and all that descend from it.  no_new_privs must be set.  Returns 0, or -1 with errno.
 */
int filter_install(unsigned flags);

#endif
