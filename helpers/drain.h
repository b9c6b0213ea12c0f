/* From a pipe into a capture file, up to a limit; the rest into nowhere, counted. */
#ifndef EXECSANDBOX_DRAIN_H
#define EXECSANDBOX_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "request.h"

struct stream {
	int pipe; /* nonblocking read end; -1 when closed */
	int file; /* the capture file */
	uint64_t limit;
	uint64_t stored;
	uint64_t observed;
	int errnum;    /* of the write that failed: nothing is stored after it */
	bool ended;    /* end of file was seen */
	bool cut;      /* it came only because we ended who held the pipe */
	bool copying;  /* splice(2) is not for this file */
	bool enlarged; /* the pipe is, because much passes through it */
};

/*
 * Moves at most BUDGET bytes, without waiting. SINK is /dev/null, open for writing.
 * Returns how many were moved; the pipe is closed at its end of file.
 */
size_t stream_drain(struct stream *stream, int sink, size_t budget);

/* Gives the pipe up. Idempotent. */
void stream_close(struct stream *stream);

/* Tells RECORD how things stand. */
void stream_report(const struct stream *stream, struct record_stream *record);

#endif
