#include "ending.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol.h"
#include "proxies.h"
#include "stage.h"
#include "sweep.h"

/* How long the inner stage may take to end everything before we do it from outside. */
#define END_PATIENCE_NS (2u * (uint64_t)NS_PER_SECOND)

enum { CUT_BUDGET = 2 * 1024 * 1024 }; /* bytes: more than a pipe of ours holds */

/* The first failure counts; none does once the command has run. */
void ending_fail(struct supervisor *self, const char *stage, int errnum, const char *format, ...)
{
	struct record_finished *finished = &self->finished;
	va_list arguments;

	if (self->failed || self->started)
		return;
	self->failed = true;
	finished->errnum = errnum;
	snprintf(finished->stage, sizeof finished->stage, "%s", stage);
	va_start(arguments, format);
	vsnprintf(finished->text, sizeof finished->text, format, arguments);
	va_end(arguments);
}

void ending_reaped(void *context, pid_t pid, int status, const struct rusage *usage)
{
	struct supervisor *self = context;

	(void)usage;
	if (pid == self->launcher)
		self->launcher = 0;
	else if (pid == self->filter)
		self->filter = 0;
	else if (self->sweeping && pid != self->stage && pid != self->command && WIFSIGNALED(status) &&
	         WTERMSIG(status) == SIGKILL)
		self->finished.descendants_killed++;
}

/* From outside, whatever the inner stage does: everything that descends from us. */
void ending_from_outside(struct supervisor *self)
{
	self->hard_at = NEVER;
	/* End of file: the inner stage ends its own namespace at once. */
	if (self->inner >= 0)
		shutdown(self->inner, SHUT_WR);
	if (self->launcher > 0)
		kill(self->launcher, SIGKILL);
	self->sweeping = supervisor_asks(self, REQUEST_DIRECT);
	sweep_kill(self->launcher, ending_reaped, self);
	self->no_children = true;
}

/* What the command has left open is closed by us: its output is cut off. */
static void cut_streams(struct supervisor *self)
{
	int number;

	for (number = 0; number < 2; number++) {
		struct stream *stream = &self->streams[number];

		stream_drain(stream, self->sink, CUT_BUDGET);
		stream->cut = stream->pipe >= 0;
	}
}

/* KILL, now. */
void ending_now(struct supervisor *self)
{
	self->kill_at = NEVER;
	if (self->ended && !self->end_sent)
		cut_streams(self);
	if (!self->hello) {
		ending_from_outside(self);
		return;
	}
	if (self->end_sent)
		return;
	self->end_sent = true;
	stage_order(self, ORDER_END, 0);
	self->hard_at = supervisor_later(END_PATIENCE_NS);
}

/* Timeout, cancel. A second one does not prolong the grace of the first. */
void ending_stop(struct supervisor *self, enum ending ending)
{
	if (self->left)
		return;
	if (self->ended || self->failed) {
		ending_now(self);
		return;
	}
	if (self->stopping)
		return;
	self->stopping = true;
	self->finished.ending = ending;
	self->timeout_at = NEVER;
	proxies_cut(self);
	if (!self->hello || self->view.request->kill_grace_ns == 0) {
		ending_now(self);
		return;
	}
	stage_order(self, ORDER_TERMINATE, 0);
	self->kill_at = supervisor_later(self->view.request->kill_grace_ns);
}

void ending_cut(struct supervisor *self)
{
	if (self->left)
		return;
	if (!self->ended && !self->failed && !self->stopping) {
		self->stopping = true;
		self->finished.ending = ENDING_CANCELLED;
	}
	self->timeout_at = NEVER;
	proxies_cut(self);
	ending_now(self);
}

void ending_host_gone(struct supervisor *self)
{
	if (self->control >= 0)
		close(self->control);
	self->control = -1;
	if (self->left)
		return; /* what stays was meant to */
	proxies_cut(self);
	self->stopping = true;
	self->timeout_at = NEVER;
	self->end_sent = false;
	ending_now(self);
}
