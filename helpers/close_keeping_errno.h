/* For ends of functions that fail: what is released must not hide why. */
#ifndef EXECSANDBOX_CLOSE_KEEPING_ERRNO_H
#define EXECSANDBOX_CLOSE_KEEPING_ERRNO_H

#include <errno.h>
#include <unistd.h>

/* Closes FD where it is one (-1 is none); errno stays. */
static inline void close_keeping_errno(int fd)
{
	int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
}

#endif
