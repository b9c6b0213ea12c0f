#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
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

#include "ending.h"
#include "preparation.h"
#include "protocol.h"
#include "proxies.h"
#include "records.h"
#include "stage.h"
#include "supervisor_state.h"
#include "sweep.h"

enum { DRAIN_BUDGET = 1024 * 1024 }; /* bytes of one pipe before the others get their turn */

static void hear_signals(struct supervisor *self)
{
	struct signalfd_siginfo info;

	while (read(self->signals, &info, sizeof info) == (ssize_t)sizeof info) {
		if (info.ssi_signo == SIGTERM)
			ending_stop(self, ENDING_CANCELLED);
	}
	self->no_children = sweep_reap(ending_reaped, self) == 0;
	/*
	 * Without its launcher the inner stage is not reached any more; what the launcher
	 * forked must not linger.
	 */
	if (self->launcher == 0 && !self->hello && self->hard_at == NEVER)
		self->hard_at = supervisor_later(NS_PER_SECOND / 2);
	/*
	 * One that is killed before its child has asked to die with it (PR_SET_PDEATHSIG) leaves
	 * an inner stage that goes on: what that has to say comes first.
	 */
	if (self->launcher == 0 && self->hello && !self->ended) {
		stage_hear(self);
		if (self->inner >= 0 && !self->ended)
			ending_now(self);
	}
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
		ending_stop(self, ENDING_TIMEOUT);
	if (now >= self->kill_at)
		ending_now(self);
	if (self->inner >= 0 && !self->end_sent && !self->left) {
		if (drained(self)) {
			if (supervisor_asks(self, REQUEST_LEAVE) && !self->stopping)
				leave(self);
			else
				ending_now(self);
		}
	}
	if (now >= self->hard_at)
		ending_from_outside(self);
	if (self->inner < 0 && self->launcher == 0)
		proxies_dismiss(self);
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
	if (self->filter_kill_at < at)
		at = self->filter_kill_at;
	if (relay_due(&self->relay) < at)
		at = relay_due(&self->relay);
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
	enum { CONTROL, INNER, WORDS, SIGNALS, OUTPUT, ERROR, RELAY, POLLS };
	struct pollfd polls[POLLS] = {
		[CONTROL] = { .fd = self->control, .events = POLLIN },
		[INNER] = { .fd = self->inner, .events = POLLIN },
		[WORDS] = { .fd = self->words, .events = POLLIN },
		[SIGNALS] = { .fd = self->signals, .events = POLLIN },
		[OUTPUT] = { .fd = self->streams[0].pipe, .events = POLLIN },
		[ERROR] = { .fd = self->streams[1].pipe, .events = POLLIN },
		[RELAY] = { .fd = relay_descriptor(&self->relay), .events = POLLIN },
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
		stage_hear_launcher(self);
	if (polls[INNER].revents != 0)
		stage_hear(self);
	if (polls[SIGNALS].revents != 0)
		hear_signals(self);
	if (polls[CONTROL].revents & POLLOUT)
		self->blocked = false;
	if (polls[CONTROL].revents & ~POLLOUT)
		records_hear(self);
	relay_turn(&self->relay);
	advance(self);
	records_send(self);
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

			stage_hear_launcher(self);
			if (self->launcher_length == before)
				break;
		}
		trim_launcher_text(self);
		ending_fail(self, "backend", 0, "%s",
		            self->launcher_length > 0 ? self->launcher_text
		                                      : "the launcher ended without a word");
	}
	ending_fail(self, "inner", 0, "the inner stage was lost");
	finished->ending = ENDING_LAUNCH_FAILED;
}

static void clean_up(struct supervisor *self)
{
	cgroup_remove(&self->cgroup);
	while (self->claim_count > 0)
		claim_release(&self->claims[--self->claim_count], self->launch.mask);
	home_remove(&self->home);
}

static void finish(struct supervisor *self)
{
	struct pollfd poll_control = { .events = POLLIN | POLLOUT };
	int number;

	proxies_finish(self);
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
	records_send(self);
	/* A host that does not read is waited for; one that is gone is not. */
	while (self->send_finished && self->control >= 0) {
		poll_control.fd = self->control;
		if (poll(&poll_control, 1, -1) < 0)
			continue;
		if (poll_control.revents & POLLOUT) {
			self->blocked = false;
			records_send(self);
		} else {
			records_hear(self);
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

/*
 * A supervisor that stays with descendants may outlive the run's handle in a host that
 * lives on: nobody would reap it.  So the host's child is another one, which ends here.
 */
static int detach(void)
{
	pid_t pid = fork();

	if (pid > 0)
		_exit(0);
	return pid < 0 ? -1 : prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* not inherited */
}

static void start(struct supervisor *self)
{
	const struct request *request;
	const char *wrong = request_view_open(&self->view, SUPERVISOR_REQUEST);

	if (wrong != NULL) {
		ending_fail(self, "supervisor", EINVAL, "%s", wrong);
		return;
	}
	request = self->view.request;
	if ((supervisor_asks(self, REQUEST_LEAVE) && detach() < 0) ||
	    launch_prepare(&self->launch, &self->view) < 0 || preparation_channels(self) < 0 ||
	    proxies_prepare(self) < 0) {
		ending_fail(self, "supervisor", errno, "cannot prepare the launch: %s", strerror(errno));
		return;
	}
	if (preparation_claims(self) < 0 || preparation_home(self) < 0)
		return;
	if (preparation_settings(self) < 0) {
		ending_fail(self, "supervisor", errno, "cannot prepare the launch: %s", strerror(errno));
		return;
	}
	self->launched_ns = clock_now();
	if (request->timeout_ns != 0)
		self->timeout_at = supervisor_later(request->timeout_ns);
	self->launcher = launch_start(&self->launch, &self->view);
	if (self->launcher < 0) {
		self->launcher = 0;
		ending_fail(self, "backend", errno, "cannot start %s: %s",
		            self->launch.words != NULL ? self->launch.words[0] : "the inner stage",
		            strerror(errno));
		return;
	}
	self->no_children = false;
	preparation_close_child_ends(self);
}

int supervisor_main(void)
{
	static struct supervisor self = {
		.cgroup = CGROUP_NONE,
		.home = { .parent = -1, .directory = -1 },
		.control = SUPERVISOR_CONTROL,
		.inner = -1,
		.words = -1,
		.filter_control = -1,
		.streams = { { .pipe = -1 }, { .pipe = -1 } },
		.timeout_at = NEVER,
		.kill_at = NEVER,
		.drain_at = NEVER,
		.hard_at = NEVER,
		.filter_kill_at = NEVER,
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
