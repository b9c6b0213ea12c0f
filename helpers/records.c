#include "records.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ending.h"
#include "protocol.h"
#include "stage.h"

/* Returns false where the record must wait, or nobody is there to read it. */
static bool send_record(struct supervisor *self, const void *record, size_t size)
{
	if (self->control < 0)
		return false;
	if (send(self->control, record, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == EINTR)
		self->blocked = true;
	else
		ending_host_gone(self);
	return false;
}

static void send_progress(struct supervisor *self)
{
	struct record_progress record = { .type = RECORD_PROGRESS };
	uint64_t bytes = self->streams[0].observed + self->streams[1].observed;
	int number;

	if (!supervisor_asks(self, REQUEST_PROGRESS) || self->progress_out ||
	    bytes == self->progress_bytes || self->send_finished)
		return;
	for (number = 0; number < 2; number++)
		stream_report(&self->streams[number], &record.streams[number]);
	if (!send_record(self, &record, sizeof record))
		return;
	self->progress_out = true;
	self->progress_bytes = bytes;
}

/*
 * Were a command unread when the socket is closed, the core would get ECONNRESET before the
 * last record (unix(7)): first no more can come, then all are read.
 */
static void hear_no_more(const struct supervisor *self)
{
	struct command command;
	ssize_t length;

	shutdown(self->control, SHUT_RD);
	do
		length = recv(self->control, &command, sizeof command, MSG_DONTWAIT);
	while (length > 0 || (length < 0 && errno == EINTR));
}

void records_send(struct supervisor *self)
{
	const struct record_started started = { .type = RECORD_STARTED, .pid = self->command };

	if (self->blocked)
		return;
	if (self->send_started) {
		if (!send_record(self, &started, sizeof started))
			return;
		self->send_started = false;
	}
	send_progress(self);
	if (self->send_finished && !self->blocked) {
		if (!send_record(self, &self->finished, sizeof self->finished))
			return;
		self->send_finished = false;
		hear_no_more(self);
		/*
		 * Nothing comes after it.  The socket ends with this process, so that its end
		 * says that there is something to reap; one that stays with descendants closes it.
		 */
		if (self->left) {
			close(self->control);
			self->control = -1;
		}
	}
}

void records_hear(struct supervisor *self)
{
	struct command command;
	ssize_t length;

	while (self->control >= 0) {
		length = recv(self->control, &command, sizeof command, MSG_DONTWAIT);
		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (length <= 0) {
			ending_host_gone(self);
			return;
		}
		if (length != (ssize_t)sizeof command)
			continue;
		switch (command.type) {
		case COMMAND_SIGNAL:
			if (command.value >= 1 && command.value <= 64)
				stage_order(self, ORDER_SIGNAL, command.value);
			break;
		case COMMAND_CANCEL:
			ending_stop(self, ENDING_CANCELLED);
			break;
		case COMMAND_END:
			ending_cut(self);
			break;
		case COMMAND_PROGRESS:
			self->progress_out = false;
			break;
		default:
			break;
		}
	}
}
