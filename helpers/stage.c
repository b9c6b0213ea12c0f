#include "stage.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ending.h"
#include "protocol.h"
#include "proxies.h"

/* How long the launcher may go on without the inner stage. */
#define LAUNCHER_PATIENCE_NS (2u * (uint64_t)NS_PER_SECOND)

void stage_order(struct supervisor *self, uint32_t type, int32_t value)
{
	const struct order order = { .type = type, .value = value };

	/* Where it fails the inner stage is gone, or stuck: hard_at is for that. */
	if (self->inner >= 0)
		send(self->inner, &order, sizeof order, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void count_processes(struct supervisor *self, pid_t inner)
{
	const struct request *request = self->view.request;

	if (!supervisor_asks(self, REQUEST_CGROUP_PROCESSES) || self->stopping)
		return;
	if (cgroup_enter(&self->cgroup, inner, request->limits[REQUEST_LIMIT_PROCESSES],
	                 request->run_id) == 0) {
		stage_order(self, ORDER_GO, 0);
		return;
	}
	ending_fail(self, "cgroup", errno, "cannot make a pids cgroup for the limit on processes: %s",
	            strerror(errno));
	ending_now(self);
}

static void take_usage(struct supervisor *self, const struct message *message)
{
	self->finished.user_ns = message->user_ns;
	self->finished.system_ns = message->system_ns;
	self->finished.max_rss_bytes = message->max_rss_bytes;
}

static void command_ended(struct supervisor *self, const struct message *message)
{
	struct record_finished *finished = &self->finished;

	self->ended = true;
	self->timeout_at = NEVER;
	if (WIFSIGNALED(message->value)) {
		finished->signal = WTERMSIG(message->value);
		finished->exit_code = -1;
	} else {
		finished->exit_code = WEXITSTATUS(message->value);
	}
	finished->real_ns = message->at_ns - self->launched_ns;
	take_usage(self, message);
	self->drain_at = supervisor_later(self->view.request->drain_grace_ns);
}

/* What comes along with a message. */
struct ancillary {
	pid_t sender; /* as we number it; 0 where the kernel did not say */
	int descriptors[PROXIES_MOST];
	int count;
};

static void hear_message(struct supervisor *self, struct message *message,
                         struct ancillary *ancillary)
{
	pid_t pid = ancillary->sender;

	switch (message->type) {
	case MESSAGE_HELLO:
		self->hello = true;
		self->stage = pid;
		count_processes(self, pid);
		break;
	case MESSAGE_STARTING:
		self->starting = true;
		self->command = pid;
		break;
	case MESSAGE_STARTED:
		self->started = true;
		self->send_started = true;
		break;
	case MESSAGE_FAILED:
		message->stage[sizeof message->stage - 1] = '\0';
		message->text[sizeof message->text - 1] = '\0';
		ending_fail(self, message->stage, message->errnum, "%s", message->text);
		break;
	case MESSAGE_EXITED:
		if (!self->ended)
			command_ended(self, message);
		break;
	case MESSAGE_LISTENERS:
		proxies_serve(self, message, ancillary->descriptors, ancillary->count);
		ancillary->count = 0;
		break;
	case MESSAGE_ENDED:
		take_usage(self, message);
		self->finished.descendants_killed += (uint32_t)message->value;
		break;
	default:
		break;
	}
}

static void take_ancillary(struct msghdr *message, struct ancillary *out)
{
	struct cmsghdr *header;
	struct ucred credentials;

	out->sender = 0;
	out->count = 0;
	for (header = CMSG_FIRSTHDR(message); header != NULL; header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_SOCKET)
			continue;
		if (header->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
			out->sender = credentials.pid;
		} else if (header->cmsg_type == SCM_RIGHTS) {
			out->count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			memcpy(out->descriptors, CMSG_DATA(header), (size_t)out->count * sizeof(int));
		}
	}
}

static void close_descriptors(struct ancillary *ancillary)
{
	while (ancillary->count > 0)
		close(ancillary->descriptors[--ancillary->count]);
}

void stage_hear(struct supervisor *self)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(PROXIES_MOST * sizeof(int))];
	} control;
	struct ancillary ancillary;
	struct message message;
	ssize_t length;

	while (self->inner >= 0) {
		struct iovec part = { .iov_base = &message, .iov_len = sizeof message };
		struct msghdr header = {
			.msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof control,
		};

		length = recvmsg(self->inner, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		/* ECONNRESET: it ended with orders unread; what it said is still there (unix(7)). */
		if (length < 0 && (errno == EINTR || errno == ECONNRESET))
			continue;
		if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (length >= 0)
			take_ancillary(&header, &ancillary);
		if (length == (ssize_t)sizeof message) {
			hear_message(self, &message, &ancillary);
			close_descriptors(&ancillary);
			continue;
		}
		if (length > 0)
			close_descriptors(&ancillary);
		/* End of file, or nothing of ours: it is gone. */
		close(self->inner);
		self->inner = -1;
		/*
		 * Where it should have told us something first, it was killed: without a PID
		 * namespace the command may still be there.
		 */
		self->hard_at = self->hello && !self->ended && !self->failed
		                    ? 0
		                    : supervisor_later(LAUNCHER_PATIENCE_NS);
	}
}

void stage_hear_launcher(struct supervisor *self)
{
	char rest[1024];
	size_t room = sizeof self->launcher_text - 1 - self->launcher_length;
	ssize_t length;

	if (self->words < 0)
		return;
	if (room > 0)
		length = read(self->words, self->launcher_text + self->launcher_length, room);
	else
		length = read(self->words, rest, sizeof rest);
	if (length > 0 && room > 0)
		self->launcher_length += (size_t)length;
	if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR)) {
		close(self->words);
		self->words = -1;
	}
}
