#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "claim.h"
#include "clock.h"
#include "drain.h"
#include "launch.h"
#include "protocol.h"
#include "request_view.h"
#include "sweep.h"

#define NEVER UINT64_MAX
/* How long the inner stage may take to end everything before we do it from outside. */
#define END_PATIENCE_NS (2u * (uint64_t)NS_PER_SECOND)
enum {
	DRAIN_BUDGET = 1024 * 1024, /* bytes of one pipe before the others get their turn */
	NO_SIGNAL = 0,
};

struct supervisor {
	struct request_view view;
	struct launch launch;
	struct cgroup cgroup;
	struct claim claims[CLAIMS_MOST];
	unsigned claim_count;

	int control; /* to the core; -1: it is gone, or heard the last word */
	int inner;   /* to the inner stage; -1: it is gone */
	int words;   /* the launcher's standard error; -1 */
	int signals;
	int sink; /* /dev/null, for writing */
	struct stream streams[2];

	pid_t launcher; /* 0: not started, or reaped */
	pid_t stage;    /* the inner stage, as we number it; 0: not known */
	pid_t command;  /* 0: not known */
	uint64_t launched_ns;
	uint64_t timeout_at;
	uint64_t kill_at;  /* the grace after TERM is over */
	uint64_t drain_at; /* the command has ended: its pipes may stay open until then */
	uint64_t hard_at;  /* the inner stage does not end: kill from outside */

	bool hello;    /* the inner stage has been reached */
	bool starting; /* its child is there */
	bool started;  /* the command was executed */
	bool failed;   /* stage, errnum and text of `finished` are filled */
	bool ended;    /* the command's wait status is known */
	bool stopping; /* by timeout, cancel, or because the host is gone */
	bool end_sent; /* ORDER_END */
	bool sweeping; /* count who ends by our KILL */
	bool no_children;
	bool left; /* descendants stay, FINISHED was queued already */

	bool send_started;
	bool send_finished;
	bool progress_out; /* one RECORD_PROGRESS has not been answered */
	uint64_t progress_bytes;
	bool blocked; /* the control socket is full */

	char launcher_text[4096];
	size_t launcher_length;
	struct record_finished finished;
};

static bool asks(const struct supervisor *self, unsigned flag)
{
	return self->view.request != NULL && request_has(&self->view, flag);
}

static uint64_t later(uint64_t delay)
{
	uint64_t now = clock_now();

	return delay > NEVER - now ? NEVER : now + delay;
}

/* ---- what becomes of the run ---------------------------------------------------- */

/* The first failure counts; none does once the command has run. */
__attribute__((format(printf, 4, 5))) static void failed(struct supervisor *self, const char *stage,
                                                         int errnum, const char *format, ...)
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

static void order_inner(struct supervisor *self, uint32_t type, int32_t value)
{
	const struct order order = { .type = type, .value = value };

	/* Where it fails the inner stage is gone, or stuck: hard_at is for that. */
	if (self->inner >= 0)
		send(self->inner, &order, sizeof order, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void reaped(void *context, pid_t pid, int status, const struct rusage *usage)
{
	struct supervisor *self = context;

	(void)usage;
	if (pid == self->launcher)
		self->launcher = 0;
	else if (self->sweeping && pid != self->stage && pid != self->command && WIFSIGNALED(status) &&
	         WTERMSIG(status) == SIGKILL)
		self->finished.descendants_killed++;
}

/* From outside, whatever the inner stage does: everything that descends from us. */
static void kill_from_outside(struct supervisor *self)
{
	self->hard_at = NEVER;
	/* End of file: the inner stage ends its own namespace at once. */
	if (self->inner >= 0)
		shutdown(self->inner, SHUT_WR);
	if (self->launcher > 0)
		kill(self->launcher, SIGKILL);
	self->sweeping = asks(self, REQUEST_DIRECT);
	sweep_kill(self->launcher, reaped, self);
	self->no_children = true;
}

/* KILL, now. */
static void end_now(struct supervisor *self)
{
	self->kill_at = NEVER;
	if (!self->hello) {
		kill_from_outside(self);
		return;
	}
	if (self->end_sent)
		return;
	self->end_sent = true;
	order_inner(self, ORDER_END, 0);
	self->hard_at = later(END_PATIENCE_NS);
}

/* Timeout, cancel. A second one does not prolong the grace of the first. */
static void stop(struct supervisor *self, enum ending ending)
{
	if (self->left)
		return;
	if (self->ended || self->failed) {
		end_now(self);
		return;
	}
	if (self->stopping)
		return;
	self->stopping = true;
	self->finished.ending = ending;
	self->timeout_at = NEVER;
	if (!self->hello || self->view.request->kill_grace_ns == 0) {
		end_now(self);
		return;
	}
	order_inner(self, ORDER_TERMINATE, 0);
	self->kill_at = later(self->view.request->kill_grace_ns);
}

static void host_gone(struct supervisor *self)
{
	if (self->control >= 0)
		close(self->control);
	self->control = -1;
	if (self->left)
		return; /* what stays was meant to */
	self->stopping = true;
	self->timeout_at = NEVER;
	self->end_sent = false;
	end_now(self);
}

/* ---- records -------------------------------------------------------------------------- */

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
		host_gone(self);
	return false;
}

static void send_progress(struct supervisor *self)
{
	struct record_progress record = { .type = RECORD_PROGRESS };
	uint64_t bytes = self->streams[0].observed + self->streams[1].observed;
	int number;

	if (!asks(self, REQUEST_PROGRESS) || self->progress_out || bytes == self->progress_bytes ||
	    self->send_finished)
		return;
	for (number = 0; number < 2; number++)
		stream_report(&self->streams[number], &record.streams[number]);
	if (!send_record(self, &record, sizeof record))
		return;
	self->progress_out = true;
	self->progress_bytes = bytes;
}

static void send_records(struct supervisor *self)
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
		/* Nothing comes after it. */
		close(self->control);
		self->control = -1;
	}
}

static void hear_commands(struct supervisor *self)
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
			host_gone(self);
			return;
		}
		if (length != (ssize_t)sizeof command)
			continue;
		switch (command.type) {
		case COMMAND_SIGNAL:
			if (command.value >= 1 && command.value <= 64)
				order_inner(self, ORDER_SIGNAL, command.value);
			break;
		case COMMAND_CANCEL:
			stop(self, ENDING_CANCELLED);
			break;
		case COMMAND_PROGRESS:
			self->progress_out = false;
			break;
		default:
			break;
		}
	}
}

/* ---- the inner stage -------------------------------------------------------------------- */

static void count_processes(struct supervisor *self, pid_t inner)
{
	const struct request *request = self->view.request;

	if (!asks(self, REQUEST_CGROUP_PROCESSES) || self->stopping)
		return;
	if (cgroup_enter(&self->cgroup, inner, request->limits[REQUEST_LIMIT_PROCESSES],
	                 request->run_id) == 0) {
		order_inner(self, ORDER_GO, 0);
		return;
	}
	failed(self, "cgroup", errno, "cannot make a pids cgroup for the limit on processes: %s",
	       strerror(errno));
	end_now(self);
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
	self->drain_at = later(self->view.request->drain_grace_ns);
}

/* PID: of the sender, as we number it; 0 where the kernel did not say. */
static void hear_message(struct supervisor *self, struct message *message, pid_t pid)
{
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
		failed(self, message->stage, message->errnum, "%s", message->text);
		break;
	case MESSAGE_EXITED:
		if (!self->ended)
			command_ended(self, message);
		break;
	case MESSAGE_ENDED:
		take_usage(self, message);
		self->finished.descendants_killed += (uint32_t)message->value;
		break;
	default:
		break;
	}
}

static pid_t sender(struct msghdr *message)
{
	struct cmsghdr *header;
	struct ucred credentials;

	for (header = CMSG_FIRSTHDR(message); header != NULL; header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
			return credentials.pid;
		}
	}
	return 0;
}

static void hear_inner(struct supervisor *self)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
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
		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (length == (ssize_t)sizeof message) {
			hear_message(self, &message, sender(&header));
			continue;
		}
		/* End of file, or nothing of ours: it is gone. */
		close(self->inner);
		self->inner = -1;
		/*
		 * Where it should have told us something first, it was killed: without a PID
		 * namespace the command may still be there.
		 */
		self->hard_at = self->hello && !self->ended && !self->failed ? 0 : later(END_PATIENCE_NS);
	}
}

static void hear_launcher(struct supervisor *self)
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

static void hear_signals(struct supervisor *self)
{
	struct signalfd_siginfo info;

	while (read(self->signals, &info, sizeof info) == (ssize_t)sizeof info) {
		if (info.ssi_signo == SIGTERM)
			stop(self, ENDING_CANCELLED);
	}
	self->no_children = sweep_reap(reaped, self) == 0;
	/*
	 * Without its launcher the inner stage is not reached any more; what the launcher
	 * forked must not linger.
	 */
	if (self->launcher == 0 && !self->hello && self->hard_at == NEVER)
		self->hard_at = later(NS_PER_SECOND / 2);
}

/* ---- the event loop ------------------------------------------------------------------------ */

static bool pipes_ended(const struct supervisor *self)
{
	return self->streams[0].pipe < 0 && self->streams[1].pipe < 0;
}

static bool drained(const struct supervisor *self)
{
	return self->ended && (pipes_ended(self) || clock_now() >= self->drain_at);
}

/* descendants = "leave": the last word is said, and what stays is waited for. */
static void leave(struct supervisor *self)
{
	int number;

	self->left = true;
	for (number = 0; number < 2; number++) {
		stream_drain(&self->streams[number], self->sink, DRAIN_BUDGET);
		stream_close(&self->streams[number]);
		stream_report(&self->streams[number], &self->finished.streams[number]);
	}
	self->timeout_at = self->kill_at = self->drain_at = self->hard_at = NEVER;
	self->send_finished = true;
}

/* What follows from what was heard. */
static void advance(struct supervisor *self)
{
	uint64_t now = clock_now();

	if (now >= self->timeout_at)
		stop(self, ENDING_TIMEOUT);
	if (now >= self->kill_at)
		end_now(self);
	if (self->inner >= 0 && !self->end_sent && !self->left) {
		if (drained(self)) {
			if (asks(self, REQUEST_LEAVE) && !self->stopping)
				leave(self);
			else
				end_now(self);
		}
	}
	if (now >= self->hard_at)
		kill_from_outside(self);
}

static bool over(const struct supervisor *self)
{
	return self->inner < 0 && self->no_children;
}

static int wait_time(const struct supervisor *self, struct timespec *time)
{
	uint64_t at = self->timeout_at, now;

	if (self->kill_at < at)
		at = self->kill_at;
	if (self->hard_at < at)
		at = self->hard_at;
	if (self->ended && !self->end_sent && self->inner >= 0 && self->drain_at < at)
		at = self->drain_at;
	if (at == NEVER)
		return 0;
	now = clock_now();
	at = at > now ? at - now : 0;
	time->tv_sec = (time_t)(at / NS_PER_SECOND);
	time->tv_nsec = (long)(at % NS_PER_SECOND);
	return 1;
}

static void turn(struct supervisor *self)
{
	enum { CONTROL, INNER, WORDS, SIGNALS, OUTPUT, ERROR, POLLS };
	struct pollfd polls[POLLS] = {
		[CONTROL] = { .fd = self->control, .events = POLLIN },
		[INNER] = { .fd = self->inner, .events = POLLIN },
		[WORDS] = { .fd = self->words, .events = POLLIN },
		[SIGNALS] = { .fd = self->signals, .events = POLLIN },
		[OUTPUT] = { .fd = self->streams[0].pipe, .events = POLLIN },
		[ERROR] = { .fd = self->streams[1].pipe, .events = POLLIN },
	};
	struct timespec time;

	if (self->blocked)
		polls[CONTROL].events |= POLLOUT;
	if (ppoll(polls, POLLS, wait_time(self, &time) ? &time : NULL, NULL) < 0)
		return;
	if (polls[OUTPUT].revents != 0)
		stream_drain(&self->streams[0], self->sink, DRAIN_BUDGET);
	if (polls[ERROR].revents != 0)
		stream_drain(&self->streams[1], self->sink, DRAIN_BUDGET);
	if (polls[WORDS].revents != 0)
		hear_launcher(self);
	if (polls[INNER].revents != 0)
		hear_inner(self);
	if (polls[SIGNALS].revents != 0)
		hear_signals(self);
	if (polls[CONTROL].revents & POLLOUT)
		self->blocked = false;
	if (polls[CONTROL].revents & ~POLLOUT)
		hear_commands(self);
	advance(self);
	send_records(self);
}

/* ---- the end ---------------------------------------------------------------------------------- */

static void trim_launcher_text(struct supervisor *self)
{
	while (self->launcher_length > 0 &&
	       (unsigned char)self->launcher_text[self->launcher_length - 1] <= ' ')
		self->launcher_length--;
	self->launcher_text[self->launcher_length] = '\0';
}

/* All is gone. What was it? */
static void conclude(struct supervisor *self)
{
	struct record_finished *finished = &self->finished;

	if (self->ended)
		return;
	finished->real_ns = self->launched_ns == 0 ? 0 : clock_now() - self->launched_ns;
	finished->exit_code = -1;
	if (self->started || (self->starting && !self->failed)) {
		/*
		 * The inner stage was killed, and with it the command, by the signal that
		 * everything in the sandbox gets.
		 */
		finished->signal = SIGKILL;
		return;
	}
	if (self->stopping && !self->failed)
		return; /* before it began */
	if (!self->failed && !self->hello) {
		while (self->words >= 0 && self->launcher_length < sizeof self->launcher_text - 1) {
			size_t before = self->launcher_length;

			hear_launcher(self);
			if (self->launcher_length == before)
				break;
		}
		trim_launcher_text(self);
		failed(self, "backend", 0, "%s",
		       self->launcher_length > 0 ? self->launcher_text
		                                 : "the launcher ended without a word");
	}
	failed(self, "inner", 0, "the inner stage was lost");
	finished->ending = ENDING_LAUNCH_FAILED;
}

static void clean_up(struct supervisor *self)
{
	cgroup_remove(&self->cgroup);
	while (self->claim_count > 0)
		claim_release(&self->claims[--self->claim_count], self->launch.mask);
}

static void finish(struct supervisor *self)
{
	struct pollfd poll_control = { .events = POLLIN | POLLOUT };
	int number;

	clean_up(self);
	if (self->left)
		return;
	for (number = 0; number < 2; number++) {
		/* What is in the pipe still; not what others, who got it passed, may add. */
		stream_drain(&self->streams[number], self->sink, 2 * DRAIN_BUDGET);
		stream_close(&self->streams[number]);
		stream_report(&self->streams[number], &self->finished.streams[number]);
	}
	conclude(self);
	self->send_finished = true;
	self->blocked = false;
	send_records(self);
	/* A host that does not read is waited for; one that is gone is not. */
	while (self->send_finished && self->control >= 0) {
		poll_control.fd = self->control;
		if (poll(&poll_control, 1, -1) < 0)
			continue;
		if (poll_control.revents & POLLOUT) {
			self->blocked = false;
			send_records(self);
		} else {
			hear_commands(self);
		}
		poll_control.events = POLLOUT | POLLIN;
	}
}

/* ---- the start ----------------------------------------------------------------------------------- */

/* For us and, by inheritance, for the launcher: dispositions to default, all blocked. */
static void take_signals(void)
{
	/* The kernel's struct sigaction: all zero is SIG_DFL without flags. */
	static const uint64_t defaults[8];
	sigset_t all;
	int signum;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* Not sigaction(3), which hides the two that the C library keeps to itself. */
	for (signum = 1; signum <= 64; signum++) {
		if (signum != SIGKILL && signum != SIGSTOP)
			syscall(SYS_rt_sigaction, signum, defaults, NULL, 8);
	}
}

static void take_process(struct supervisor *self)
{
	int fd;

	setsid(); /* fails only where we lead a group already: then we are in a session of ours */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	clearenv();
	self->launch.mask = umask(0); /* the modes of what we make are meant (claim.h) */
	getrlimit(RLIMIT_NOFILE, &self->launch.files);
	syscall(SYS_close_range, SUPERVISOR_FIRST_FREE, ~0u, 0);
	for (fd = SUPERVISOR_CONTROL; fd < SUPERVISOR_FIRST_FREE; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static int make_pipe(struct stream *stream, int *write_end)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	stream->pipe = ends[0];
	*write_end = ends[1];
	return fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

static int open_channels(struct supervisor *self)
{
	struct stream stream = { .pipe = -1, .limit = self->view.request->capture_limit };
	const int yes = 1;
	sigset_t watched;
	int ends[2];

	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	sigaddset(&watched, SIGTERM);
	self->signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	self->streams[0] = self->streams[1] = stream;
	self->streams[0].file = SUPERVISOR_OUTPUT;
	self->streams[1].file = SUPERVISOR_ERROR;
	self->sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (self->sink < 0 || self->signals < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	self->inner = ends[0];
	self->launch.control = ends[1];
	if (setsockopt(self->inner, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) < 0)
		return -1;
	if (make_pipe(&self->streams[0], &self->launch.output) < 0)
		return -1;
	self->launch.error = self->launch.output;
	if (!asks(self, REQUEST_MERGE) && make_pipe(&self->streams[1], &self->launch.error) < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	self->words = ends[0];
	self->launch.words_of_its_own = ends[1];
	/* The launcher writes to it as to any standard error. */
	return fcntl(ends[1], F_SETFL, 0);
}

static void close_child_ends(struct supervisor *self)
{
	close(self->launch.control);
	close(self->launch.output);
	if (self->launch.error != self->launch.output)
		close(self->launch.error);
	close(self->launch.words_of_its_own);
	/* The command's standard input is not ours: a pipe must end when the command closes it. */
	close(SUPERVISOR_STDIN);
}

/* What the core could not know: the object that stands at a claimed path. */
static void complete(struct supervisor *self, const struct request_claim *wanted,
                     const struct claim *claim)
{
	if (wanted->check != UINT32_MAX) {
		struct request_check *check = &request_checks(&self->view)[wanted->check];

		check->device = claim->device;
		check->inode = claim->inode;
	}
	if (wanted->mount != UINT32_MAX) {
		struct request_mount *mount = &request_mounts(&self->view)[wanted->mount];

		mount->device = mount->place_device = claim->device;
		mount->inode = mount->place_inode = claim->inode;
	}
}

/* Makes or joins the placeholders, and completes the checks that name them. */
static int take_claims(struct supervisor *self)
{
	const struct request *request = self->view.request;
	uint32_t number;

	for (number = 0; number < request->claim_count; number++) {
		const struct request_claim *wanted = &request_claims(&self->view)[number];
		const char *path = request_string(&self->view, wanted->path);
		struct claim *claim = &self->claims[self->claim_count];
		int result;

		if (self->claim_count == CLAIMS_MOST) {
			failed(self, "claim", E2BIG, "more than %d protected names are missing",
			       (int)CLAIMS_MOST);
			return -1;
		}
		result = claim_take(claim, path);
		if (result < 0) {
			failed(self, "claim", errno, "cannot protect the missing %s: %s", path,
			       strerror(errno));
			return -1;
		}
		complete(self, wanted, claim);
		if (result == CLAIM_HELD)
			self->claim_count++;
	}
	return 0;
}

/*
 * What the inner stage finds when it starts.  The locks go along: they last as long as
 * somebody of us is alive, so that a killed supervisor's placeholder cannot be removed
 * under the mounts of a sandbox that is still ending.
 */
static int send_settings(struct supervisor *self)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(CLAIMS_MOST * sizeof(int))];
	} control;
	struct order order = {
		.type = ORDER_SETTINGS,
		.umask = self->launch.mask,
		.files_soft = self->launch.files.rlim_cur,
		.files_hard = self->launch.files.rlim_max,
	};
	struct iovec part = { .iov_base = &order, .iov_len = sizeof order };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *header;
	unsigned number;
	int locks[CLAIMS_MOST];

	if (self->claim_count > 0) {
		for (number = 0; number < self->claim_count; number++)
			locks[number] = self->claims[number].directory;
		memset(&control, 0, sizeof control);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(self->claim_count * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(self->claim_count * sizeof(int));
		memcpy(CMSG_DATA(header), locks, self->claim_count * sizeof(int));
	}
	return sendmsg(self->inner, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static void start(struct supervisor *self)
{
	const struct request *request;
	const char *wrong = request_view_open(&self->view, SUPERVISOR_REQUEST);

	if (wrong != NULL) {
		failed(self, "supervisor", EINVAL, "%s", wrong);
		return;
	}
	request = self->view.request;
	if (launch_prepare(&self->launch, &self->view) < 0 || open_channels(self) < 0) {
		failed(self, "supervisor", errno, "cannot prepare the launch: %s", strerror(errno));
		return;
	}
	if (take_claims(self) < 0)
		return;
	if (send_settings(self) < 0) {
		failed(self, "supervisor", errno, "cannot prepare the launch: %s", strerror(errno));
		return;
	}
	self->launched_ns = clock_now();
	if (request->timeout_ns != 0)
		self->timeout_at = later(request->timeout_ns);
	self->launcher = launch_start(&self->launch, &self->view);
	if (self->launcher < 0) {
		self->launcher = 0;
		failed(self, "backend", errno, "cannot start %s: %s",
		       self->launch.words != NULL ? self->launch.words[0] : "the inner stage",
		       strerror(errno));
		return;
	}
	self->no_children = false;
	close_child_ends(self);
}

int supervisor_main(void)
{
	static struct supervisor self = {
		.cgroup = CGROUP_NONE,
		.control = SUPERVISOR_CONTROL,
		.inner = -1,
		.words = -1,
		.streams = { { .pipe = -1 }, { .pipe = -1 } },
		.timeout_at = NEVER,
		.kill_at = NEVER,
		.drain_at = NEVER,
		.hard_at = NEVER,
		.no_children = true,
		.finished = { .type = RECORD_FINISHED, .exit_code = -1 },
	};
	struct stat status;

	if (fstat(SUPERVISOR_CONTROL, &status) < 0 || !S_ISSOCK(status.st_mode)) {
		dprintf(2, "execsandbox-helper: not a program to be run by hand\n");
		return 2;
	}
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	take_process(&self);
	take_signals();
	start(&self);
	if (self.launched_ns != 0 && self.launcher > 0) {
		while (!over(&self))
			turn(&self);
	}
	finish(&self);
	return 0;
}
