/*
 * One captured stream: the file it is stored in, and what is known about it.  Shared
 * by the run, which learns of progress, and by the Capture that users hold, which may
 * outlive the run; hence counted.
 */
#ifndef EXECSANDBOX_STREAM_H
#define EXECSANDBOX_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "failure.h"

enum stream_status {
	STREAM_RUNNING,
	STREAM_COMPLETE,
	STREAM_LIMIT,
	STREAM_WRITE_ERROR,
	STREAM_INTERRUPTED,
	STREAM_TIMEOUT,
	STREAM_CANCELLED,
	STREAM_LAUNCH_FAILED,
};

struct stream {
	unsigned references;
	int fd;     /* of the capture file, readable and writable; -1 when closed */
	char *path; /* of a retained file, absolute; NULL for an anonymous one */
	bool retained;
	enum stream_status status;
	uint64_t observed;
	uint64_t stored; /* closed size of the file, once the run is over */
};

/* A stream without a file, with one reference; NULL when memory is exhausted. */
struct stream *stream_new(void);

struct stream *stream_hold(struct stream *stream);

/* Gives one reference back. The last one closes the file. NULL is ignored. */
void stream_release(struct stream *stream);

/*
 * Opens an anonymous file in DIRECTORY (open(2): O_TMPFILE), or in memory
 * (memfd_create(2)) where that cannot be: nothing to remove, whoever dies.
 */
int stream_open_anonymous(struct stream *stream, const char *directory, struct failure *failure);

/*
 * Makes a new file of mode 0600 in DIRECTORY whose name begins with "execsandbox-" and
 * NAME. The caller of the library owns it: nothing here removes it after a launch.
 */
int stream_open_retained(struct stream *stream, const char *directory, const char *name,
                         struct failure *failure);

/* Removes a retained file again (a launch that did not come to be). */
void stream_remove(struct stream *stream);

/*
 * Whether a retained file is not its owner's any more: somebody removed, moved or replaced it
 * during the run, or made its directory unwritable.
 */
bool stream_is_displaced(const struct stream *stream);

/* Bytes stored so far. */
uint64_t stream_size(const struct stream *stream);

/* pread(2) that goes on after interruptions and short reads; -1 with errno. */
ssize_t stream_read(const struct stream *stream, void *bytes, size_t count, uint64_t offset);

const char *stream_status_name(enum stream_status status);

#endif
