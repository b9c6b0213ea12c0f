#include "drain.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	COPY_SIZE = 64 * 1024,
	BUSY_AFTER = 256 * 1024, /* bytes after which a larger pipe pays */
	BUSY_PIPE = 1024 * 1024, /* /proc/sys/fs/pipe-max-size, as it comes */
};

static ssize_t again(ssize_t result)
{
	return result < 0 && errno == EINTR ? -2 : result;
}

/* Writes LENGTH bytes; what did not go ends the storing. */
static void store(struct stream *stream, const char *bytes, size_t length)
{
	ssize_t written;

	while (length > 0) {
		written = again(write(stream->file, bytes, length));
		if (written == -2)
			continue;
		if (written <= 0) {
			stream->errnum = written == 0 ? EIO : errno;
			return;
		}
		stream->stored += (uint64_t)written;
		bytes += written;
		length -= (size_t)written;
	}
}

static ssize_t copy(struct stream *stream, size_t want)
{
	static char buffer[COPY_SIZE];
	ssize_t length = read(stream->pipe, buffer, want < sizeof buffer ? want : sizeof buffer);

	if (length > 0) {
		store(stream, buffer, (size_t)length);
		stream->observed += (uint64_t)length;
	}
	return length;
}

static ssize_t discard(struct stream *stream, int sink, size_t want)
{
	static char buffer[COPY_SIZE];
	ssize_t length = splice(stream->pipe, NULL, sink, NULL, want, SPLICE_F_NONBLOCK);

	if (length < 0 && errno != EAGAIN && errno != EINTR)
		length = read(stream->pipe, buffer, want < sizeof buffer ? want : sizeof buffer);
	if (length > 0)
		stream->observed += (uint64_t)length;
	return length;
}

/* One step. 0: end of file; -1: errno. */
static ssize_t move(struct stream *stream, int sink, size_t want)
{
	uint64_t room = stream->limit - stream->stored;
	ssize_t length;

	if (stream->errnum != 0 || room == 0)
		return discard(stream, sink, want);
	if (room < want)
		want = (size_t)room;
	if (stream->copying)
		return copy(stream, want);
	length =
		splice(stream->pipe, NULL, stream->file, NULL, want, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (length > 0) {
		/* What a short splice did not write is still in the pipe. */
		stream->stored += (uint64_t)length;
		stream->observed += (uint64_t)length;
	} else if (length < 0 && errno == EINVAL) {
		/* splice(2): the file cannot, or was opened to append. */
		stream->copying = true;
		return copy(stream, want);
	} else if (length < 0 && errno != EAGAIN && errno != EINTR) {
		stream->errnum = errno;
		return discard(stream, sink, want);
	}
	return length;
}

size_t stream_drain(struct stream *stream, int sink, size_t budget)
{
	size_t moved = 0;
	ssize_t length;

	while (stream->pipe >= 0 && moved < budget) {
		length = again(move(stream, sink, budget - moved));
		if (length == -2)
			continue;
		if (length < 0)
			break; /* EAGAIN: empty for now */
		if (length == 0) {
			stream->ended = true;
			stream_close(stream);
			break;
		}
		moved += (size_t)length;
	}
	if (!stream->enlarged && stream->pipe >= 0 && stream->observed > BUSY_AFTER) {
		/* Refused where the user has many pipes (pipe(7)): no matter. */
		fcntl(stream->pipe, F_SETPIPE_SZ, BUSY_PIPE);
		stream->enlarged = true;
	}
	return moved;
}

void stream_close(struct stream *stream)
{
	if (stream->pipe >= 0)
		close(stream->pipe);
	stream->pipe = -1;
}

void stream_report(const struct stream *stream, struct record_stream *record)
{
	struct stat status;

	record->stored = stream->stored;
	/* After an error only the file itself knows what it holds. */
	if (stream->errnum != 0 && fstat(stream->file, &status) == 0 && S_ISREG(status.st_mode))
		record->stored = (uint64_t)status.st_size;
	record->observed = stream->observed;
	record->errnum = stream->errnum;
	record->closed = stream->ended && !stream->cut;
}
