#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptor.h"

enum { NAME_ATTEMPTS = 100 };

struct stream *stream_new(void)
{
	struct stream *stream = calloc(1, sizeof *stream);

	if (stream != NULL) {
		stream->references = 1;
		stream->fd = -1;
	}
	return stream;
}

struct stream *stream_hold(struct stream *stream)
{
	stream->references++;
	return stream;
}

void stream_release(struct stream *stream)
{
	if (stream == NULL || --stream->references > 0)
		return;
	if (stream->fd >= 0)
		close(stream->fd);
	free(stream->path);
	free(stream);
}

int stream_open_anonymous(struct stream *stream, const char *directory, struct failure *failure)
{
	stream->fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
	if (stream->fd < 0)
		stream->fd = memfd_create("execsandbox-capture", MFD_CLOEXEC);
	stream->fd = descriptor_lift(stream->fd);
	if (stream->fd < 0)
		return failure_execution(failure, "capture", errno,
		                         "cannot make an anonymous capture file: %s", strerror(errno));
	return 0;
}

int stream_open_retained(struct stream *stream, const char *directory, const char *name,
                         struct failure *failure)
{
	size_t size = strlen(directory) + strlen(name) + sizeof "/execsandbox-" + 24;
	char *path = malloc(size);
	int attempt;

	if (path == NULL)
		return failure_memory(failure);
	for (attempt = 0; attempt < NAME_ATTEMPTS; attempt++) {
		uint64_t number = 0;

		if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
			continue;
		snprintf(path, size, "%s/execsandbox-%s-%016llx", directory, name,
		         (unsigned long long)number);
		stream->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (stream->fd >= 0) {
			stream->path = path;
			stream->retained = true;
			stream->fd = descriptor_lift(stream->fd);
			if (stream->fd >= 0)
				return 0;
			return failure_execution(failure, "capture", errno,
			                         "cannot keep the capture file '%s': %s", path,
			                         strerror(errno));
		}
		if (errno != EEXIST)
			break;
	}
	failure_execution(failure, "capture", errno, "cannot make a capture file in '%s': %s",
	                  directory, strerror(errno));
	free(path);
	return -1;
}

void stream_remove(struct stream *stream)
{
	if (stream != NULL && stream->retained && stream->path != NULL) {
		unlink(stream->path);
		stream->retained = false;
	}
}

/* It could be written when the file was made. */
static bool directory_is_closed(const char *path)
{
	const char *name = strrchr(path, '/');
	char directory[PATH_MAX];

	if (name == NULL || (size_t)(name - path) + 1 >= sizeof directory)
		return false;
	memcpy(directory, path, (size_t)(name - path) + 1);
	directory[name - path + 1] = '\0';
	return faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) < 0;
}

bool stream_is_displaced(const struct stream *stream)
{
	struct stat named, file;

	if (!stream->retained || fstat(stream->fd, &file) < 0)
		return false;
	return lstat(stream->path, &named) < 0 || named.st_dev != file.st_dev ||
	       named.st_ino != file.st_ino || directory_is_closed(stream->path);
}

uint64_t stream_size(const struct stream *stream)
{
	struct stat status;

	if (stream->fd < 0 || fstat(stream->fd, &status) < 0 || status.st_size < 0)
		return 0;
	return (uint64_t)status.st_size;
}

ssize_t stream_read(const struct stream *stream, void *bytes, size_t count, uint64_t offset)
{
	size_t done = 0;

	while (done < count) {
		ssize_t got = pread(stream->fd, (char *)bytes + done, count - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

const char *stream_status_name(enum stream_status status)
{
	switch (status) {
	case STREAM_RUNNING:
		return "running";
	case STREAM_COMPLETE:
		return "complete";
	case STREAM_LIMIT:
		return "limit";
	case STREAM_WRITE_ERROR:
		return "write-error";
	case STREAM_INTERRUPTED:
		return "interrupted";
	case STREAM_TIMEOUT:
		return "timeout";
	case STREAM_CANCELLED:
		return "cancelled";
	case STREAM_LAUNCH_FAILED:
		return "launch-failed";
	}
	return "?";
}
