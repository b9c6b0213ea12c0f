/*
 * The system call filter of the sandbox: what kernel surface the command does not get.
 *
 * The supervisor builds it while the launcher is busy, and sends it to the inner stage,
 * which installs it: building costs libseccomp a millisecond or two that nobody waits for.
 */
#ifndef EXECSANDBOX_FILTER_H
#define EXECSANDBOX_FILTER_H

#include <linux/filter.h>
#include <stdint.h>

enum { FILTER_MOST = 2048 };

struct filter {
	uint32_t count;
	struct sock_filter instructions[FILTER_MOST];
};

/* The filter that FLAGS (enum request_flag) ask for. Returns 0, or -1 with errno. */
int filter_build(unsigned flags, struct filter *filter);

/*
 * Installs FILTER, made with the same FLAGS, in the calling process, for it and all that
 * descend from it.  no_new_privs must be set.  Returns 0, or -1 with errno.
 */
int filter_install(const struct filter *filter, unsigned flags);

#endif
