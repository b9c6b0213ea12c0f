/*
 * The rules of the system call filter, made into programs by libseccomp when the helper is
 * built: that takes a millisecond or two for each, which no launch should wait for, and
 * the helper needs no library at run time.
 */
#ifndef EXECSANDBOX_FILTER_BUILD_H
#define EXECSANDBOX_FILTER_BUILD_H

#include <linux/filter.h>
#include <stdint.h>

enum { FILTER_MOST = 2048 };

struct filter_program {
	uint32_t count;
	struct sock_filter instructions[FILTER_MOST];
};

/* The program that FLAGS (enum request_flag) ask for. Returns 0, or -1 with errno. */
int filter_build(unsigned flags, struct filter_program *filter);

#endif
