#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int descriptor_lift(int fd)
{
	int lifted, error;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	lifted = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	error = errno;
	close(fd);
	errno = error;
	return lifted;
}
