/*
 * One descriptor that is readable whenever a run has something to poll: the control socket,
 * or where there is more than that (a timer, room in the pipe to standard input) an epoll(7)
 * instance over it all, which event loops can watch like any other descriptor.
 */
#ifndef EXECSANDBOX_READY_H
#define EXECSANDBOX_READY_H

#include <stdbool.h>
#include <stdint.h>

#include "failure.h"

struct ready {
	int control; /* not owned */
	int epoll;   /* -1: CONTROL alone says it all */
	int timer;   /* -1: none */
};

#define READY_NONE ((struct ready){ -1, -1, -1 })

/*
 * Watches CONTROL; a tick every INTERVAL nanoseconds from now on (0: none); and WRITER (-1:
 * none), whose end is always noticed.  Returns 0, or -1 with FAILURE and nothing open.
 */
int ready_open(struct ready *ready, int control, uint64_t interval, int writer,
               struct failure *failure);

/* Closes what is open here. Idempotent. */
void ready_close(struct ready *ready);

/* The descriptor, or -1. */
int ready_descriptor(const struct ready *ready);

/* Whether the interval has passed since this was asked last. */
bool ready_ticked(struct ready *ready);

/* Whether room in WRITER is waited for. */
void ready_want_room(const struct ready *ready, int writer, bool wanted);

/* Stops watching WRITER, which is about to be closed. */
void ready_forget(const struct ready *ready, int writer);

/* Stops the ticks: nothing is left to be done at intervals. */
void ready_stop_ticks(struct ready *ready);

#endif
