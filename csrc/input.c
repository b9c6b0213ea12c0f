#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "descriptor.h"

int input_from_string(const char *bytes, size_t length, struct failure *failure)
{
	char path[64];
	int fd = memfd_create("execsandbox-input", MFD_CLOEXEC);
	int reader = -1;
	size_t done = 0;

	while (fd >= 0 && done < length) {
		ssize_t written = write(fd, bytes + done, length - done);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			break;
		done += (size_t)written;
	}
	if (fd >= 0 && done == length) {
		/* Opened anew: at its start, and not writable. */
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		reader = descriptor_lift(open(path, O_RDONLY | O_CLOEXEC));
	}
	if (reader < 0)
		failure_execution(failure, "stdin", errno, "cannot store the standard input: %s",
		                  strerror(errno));
	if (fd >= 0)
		close(fd);
	return reader;
}

int input_from_file(const char *path, struct failure *failure)
{
	/* A FIFO without a writer would hold the host up (fifo(7)); the flag is not the command's. */
	int fd = descriptor_lift(open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));

	if (fd >= 0 && fcntl(fd, F_SETFL, 0) == 0)
		return fd;
	failure_execution(failure, "stdin", errno, "cannot open '%s' as standard input: %s", path,
	                  strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

int input_inherited(struct failure *failure)
{
	int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		failure_execution(failure, "stdin", errno, "the standard input cannot be inherited: %s",
		                  strerror(errno));
	return fd;
}

int input_pipe(int *writer, struct failure *failure)
{
	int ends[2] = { -1, -1 };

	if (pipe2(ends, O_CLOEXEC) == 0) {
		ends[0] = descriptor_lift(ends[0]);
		ends[1] = descriptor_lift(ends[1]);
	}
	/* The flag is the writer's alone: each end is an open file of its own (pipe(2)). */
	if (ends[0] >= 0 && ends[1] >= 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0) {
		*writer = ends[1];
		return ends[0];
	}
	failure_execution(failure, "stdin", errno, "cannot make a pipe for the standard input: %s",
	                  strerror(errno));
	if (ends[0] >= 0)
		close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
	return -1;
}

/*
 * A pipe has no MSG_NOSIGNAL.  The signal of a failed write goes to the thread that wrote
 * (signal(7)): it is blocked there, and taken off again where it was not pending before.
 */
ssize_t input_write(int writer, const void *bytes, size_t length)
{
	const struct timespec now = { 0, 0 };
	sigset_t broken, before, pending;
	ssize_t written;
	int error;

	sigemptyset(&broken);
	sigaddset(&broken, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &broken, &before);
	do
		written = write(writer, bytes, length);
	while (written < 0 && errno == EINTR);
	error = errno;
	if (written < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&broken, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	if (written < 0 && (error == EAGAIN || error == EWOULDBLOCK))
		return 0;
	return written;
}
