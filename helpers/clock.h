/* Monotonic time in nanoseconds. */
#ifndef EXECSANDBOX_CLOCK_H
#define EXECSANDBOX_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SECOND 1000000000u

static inline uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

#endif
