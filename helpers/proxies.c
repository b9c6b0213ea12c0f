#include "proxies.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ending.h"
#include "filter_wire.h"
#include "filtering.h"
#include "stage.h"

/* For the filtering proxy to end when it is told to. */
#define FILTER_PATIENCE_NS ((uint64_t)NS_PER_SECOND / 10)

static bool has_filter(const struct supervisor *self)
{
	return self->view.request->filter_program != 0;
}

int proxies_prepare(struct supervisor *self)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} rights;
	struct command command;
	struct iovec part = { .iov_base = &command, .iov_len = sizeof command };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &rights,
		.msg_controllen = sizeof rights,
	};
	struct cmsghdr *header;

	if (!supervisor_asks(self, REQUEST_PROXY) || !has_filter(self))
		return 0;
	if (recvmsg(self->control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (header == NULL || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(2 * sizeof(int))) {
		errno = EPROTO;
		return -1;
	}
	memcpy(self->filter_files, CMSG_DATA(header), 2 * sizeof(int));
	return 0;
}

static void close_all(const int *listeners, int count)
{
	while (count > 0)
		close(listeners[--count]);
}

static int start_filter(struct supervisor *self, const int *listeners, unsigned count)
{
	const char *program = request_string(&self->view, self->view.request->filter_program);
	pid_t pid = filtering_start(program, self->filter_files[0], self->filter_files[1], listeners,
	                            count, &self->filter_control);

	if (pid < 0) {
		ending_fail(self, "proxy", errno, "cannot start the filtering proxy %s: %s", program,
		            strerror(errno));
		return -1;
	}
	self->filter = pid;
	self->no_children = false;
	return 0;
}

static int start_relay(struct supervisor *self)
{
	if (self->relay.open || relay_open(&self->relay) == 0)
		return 0;
	ending_fail(self, "proxy", errno, "cannot relay to proxies: %s", strerror(errno));
	return -1;
}

/* Each listener goes to whom it is for. Returns 0, or -1 with the failure noted; all are gone then. */
static int distribute(struct supervisor *self, const struct message *message, const int *listeners,
                      int count)
{
	const struct request_proxy *proxies = request_proxies(&self->view);
	int filtered[FILTER_LISTENERS_MOST], at = 0, result = 0;
	unsigned filtered_count = 0;
	uint32_t number;

	for (number = 0; number < self->view.request->proxy_count && at < count; number++) {
		int listener;

		if (message->text[number] == 0)
			continue;
		listener = listeners[at++];
		if (proxies[number].kind == PROXY_FILTER) {
			if (filtered_count < FILTER_LISTENERS_MOST)
				filtered[filtered_count++] = listener;
			else
				close(listener);
		} else if (result < 0 || (result = start_relay(self)) < 0) {
			close(listener);
		} else if ((result = relay_add(&self->relay, listener, &proxies[number])) < 0) {
			ending_fail(self, "proxy", errno, "cannot relay to proxies: %s", strerror(errno));
		}
	}
	close_all(listeners + at, count - at);
	if (result == 0 && filtered_count > 0)
		result = start_filter(self, filtered, filtered_count);
	close_all(filtered, (int)filtered_count);
	return result;
}

void proxies_serve(struct supervisor *self, const struct message *message, const int *listeners,
                   int count)
{
	if (self->stopping || self->failed || self->started || self->proxies_served) {
		close_all(listeners, count);
		return;
	}
	self->proxies_served = true;
	if (distribute(self, message, listeners, count) == 0)
		stage_order(self, ORDER_GO, 0);
	else
		ending_now(self);
}

static void close_filter_control(struct supervisor *self)
{
	if (self->filter_control >= 0)
		close(self->filter_control);
	self->filter_control = -1;
}

void proxies_cut(struct supervisor *self)
{
	relay_close(&self->relay);
	close_filter_control(self);
	if (self->filter > 0)
		kill(self->filter, SIGKILL);
}

void proxies_dismiss(struct supervisor *self)
{
	if (self->filter <= 0)
		return;
	if (self->filter_control >= 0) {
		close_filter_control(self);
		self->filter_kill_at = supervisor_later(FILTER_PATIENCE_NS);
	} else if (clock_now() >= self->filter_kill_at) {
		self->filter_kill_at = NEVER;
		kill(self->filter, SIGKILL);
	}
}

void proxies_finish(struct supervisor *self)
{
	relay_finish(&self->relay);
	close_filter_control(self);
}
