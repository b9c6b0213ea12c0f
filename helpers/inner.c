#include "inner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
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

#include "build_view.h"
#include "clock.h"
#include "command.h"
#include "filter.h"
#include "home.h"
#include "listeners.h"
#include "protocol.h"
#include "request_view.h"
#include "scope.h"
#include "sweep.h"
#include "verify.h"

struct inner {
	struct request_view view;
	struct command_plan plan;
	bool init;       /* PID 1 of a namespace */
	pid_t command;   /* 0: not started */
	int signals;     /* signalfd of SIGCHLD */
	bool exited;     /* the command was reaped */
	bool told;       /* and the supervisor knows */
	int status;      /* its wait status */
	uint64_t at_ns;  /* when */
	bool killing;    /* count who ends by our KILL */
	unsigned killed; /* besides the command */
};

static void tell(const struct message *message)
{
	/* Where this fails the supervisor is gone, and the next read says so. */
	while (send(INNER_CONTROL, message, sizeof *message, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

static void reaped(void *context, pid_t pid, int status, const struct rusage *usage)
{
	struct inner *inner = context;

	(void)usage;
	if (pid == inner->command) {
		inner->exited = true;
		inner->status = status;
		inner->at_ns = clock_now();
	} else if (inner->killing && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
		inner->killed++;
	}
}

/* ---- ending everything ------------------------------------------------------ */

static void kill_everything(struct inner *inner)
{
	struct rusage usage;
	int status;
	pid_t pid;

	sweep_reap(reaped, inner);
	inner->killing = true;
	if (!inner->init) {
		sweep_kill(inner->exited ? 0 : inner->command, reaped, inner);
		return;
	}
	for (;;) {
		/* From PID 1: all of its namespace but itself (kill(2)), in one instant. */
		kill(-1, SIGKILL);
		pid = wait4(-1, &status, __WALL, &usage);
		if (pid > 0)
			reaped(inner, pid, status, &usage);
		else if (errno != EINTR)
			return; /* ECHILD: nobody is left */
	}
}

/*
 * Host and supervisor may both have been killed.  As long as one of them is there to remove
 * it, the lock is not to be had, once we have let go of ours.
 */
static void remove_home(const struct inner *inner)
{
	const struct request *request = inner->view.request;

	if (request == NULL || request->home == 0)
		return;
	syscall(SYS_close_range, INNER_CONTROL, ~0u, 0);
	home_recover(request_string(&inner->view, request->home), HOME_PATIENCE_NS);
}

/* The supervisor is gone: nobody to report to. */
_Noreturn static void abandon(struct inner *inner)
{
	kill_everything(inner);
	remove_home(inner);
	_exit(1);
}

_Noreturn static void fail(struct inner *inner, const char *stage, int errnum, const char *text)
{
	struct message message = { .type = MESSAGE_FAILED, .errnum = errnum };

	snprintf(message.stage, sizeof message.stage, "%s", stage);
	if (text != NULL && errnum != 0)
		snprintf(message.text, sizeof message.text, "%.400s: %s", text, strerror(errnum));
	else if (text != NULL)
		snprintf(message.text, sizeof message.text, "%s", text);
	tell(&message);
	abandon(inner);
}

static uint64_t nanoseconds(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * NS_PER_SECOND + (uint64_t)time->tv_usec * 1000u;
}

/* All that was reaped so far: the command, and what it or we waited for. */
static void add_usage(struct message *message)
{
	struct rusage usage;

	if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
		return;
	message->user_ns = nanoseconds(&usage.ru_utime);
	message->system_ns = nanoseconds(&usage.ru_stime);
	message->max_rss_bytes = (uint64_t)usage.ru_maxrss * 1024u;
}

/* Tells that the command has ended, once. */
static void tell_exited(struct inner *inner, bool alone)
{
	struct message message = {
		.type = MESSAGE_EXITED,
		.value = inner->status,
		.at_ns = inner->at_ns,
		.alone = alone,
	};

	if (inner->told || !inner->exited)
		return;
	inner->told = true;
	add_usage(&message);
	tell(&message);
}

_Noreturn static void finish(struct inner *inner)
{
	struct message message = { .type = MESSAGE_ENDED, .value = (int32_t)inner->killed };

	add_usage(&message);
	tell(&message);
	_exit(0);
}

/* ---- orders ------------------------------------------------------------------ */

static void terminate_everything(const struct inner *inner)
{
	if (!inner->init) {
		sweep_signal(SIGTERM);
		return;
	}
	kill(-1, SIGTERM);
	kill(-1, SIGCONT); /* a stopped process would not see it */
}

static void signal_command(const struct inner *inner, int signum)
{
	if (inner->command <= 0 || inner->exited || signum < 1 || signum > 64)
		return;
	/* No such group yet: it is on its way to setsid. */
	if (kill(-inner->command, signum) < 0 && errno == ESRCH)
		kill(inner->command, signum);
}

static void obey(struct inner *inner, const struct order *order)
{
	switch (order->type) {
	case ORDER_TERMINATE:
		if (inner->command == 0)
			abandon(inner); /* nothing was started, nothing will be */
		terminate_everything(inner);
		break;
	case ORDER_SIGNAL:
		signal_command(inner, order->value);
		break;
	case ORDER_END:
		kill_everything(inner);
		tell_exited(inner, false);
		finish(inner);
	default:
		break;
	}
}

/*
 * Receives one order into BUFFER; false where there is none yet (only with MSG_DONTWAIT).
 * End of file is the end of everything.
 */
static bool receive(struct inner *inner, void *buffer, size_t size, int flags)
{
	union {
		struct cmsghdr header;
		/* kept open, and with them the locks, for as long as we live */
		char bytes[CMSG_SPACE(LOCKS_MOST * sizeof(int))];
	} control;
	struct iovec part = { .iov_base = buffer, .iov_len = size };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control,
	};
	ssize_t length;

	do {
		length = recvmsg(INNER_CONTROL, &message, flags | MSG_CMSG_CLOEXEC);
	} while (length < 0 && errno == EINTR);
	if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return false;
	if (length < (ssize_t)sizeof(uint32_t))
		abandon(inner);
	/* What is shorter than asked must not show what was there before. */
	memset((char *)buffer + length, 0, size - (size_t)length);
	return true;
}

/* Waits for the order TYPE; others that come first are obeyed. */
static void await(struct inner *inner, uint32_t type, void *buffer, size_t size)
{
	for (;;) {
		receive(inner, buffer, size, 0);
		if (*(uint32_t *)buffer == type)
			return;
		obey(inner, buffer);
	}
}

/* ---- locking the sandbox ------------------------------------------------------ */

/* Without a launcher nobody did it for us (capabilities(7)). */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
	int capability;

	memset(none, 0, sizeof none);
	for (capability = 0; capability < 64; capability++) {
		int held = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);

		/* The launcher has left few, and each that is dropped is a new set of credentials. */
		if (held > 0)
			held = prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
		if (held < 0)
			break; /* EINVAL: past the last; EPERM: verify_process judges */
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_capset, &header, none);
}

static void enter_directory(struct inner *inner)
{
	const struct request *request = inner->view.request;
	const char *path = request_string(&inner->view, request->cwd);
	struct stat status;
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &status) < 0)
		fail(inner, "cwd", errno, path);
	if ((request->cwd_device != 0 || request->cwd_inode != 0) &&
	    (status.st_dev != request->cwd_device || status.st_ino != request->cwd_inode))
		fail(inner, "cwd", 0, "the working directory in the sandbox is another one");
	if (fchdir(fd) < 0)
		fail(inner, "cwd", errno, path);
	close(fd);
}

static void lock_sandbox(struct inner *inner)
{
	unsigned flags = inner->view.request->flags;

	if ((flags & (REQUEST_FILTER | REQUEST_SCOPE_ABSTRACT)) &&
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail(inner, "filter", errno, "no_new_privs");
	if ((flags & REQUEST_SCOPE_ABSTRACT) && scope_abstract_sockets() < 0)
		fail(inner, "filter", errno, "Landlock's scope for abstract unix sockets");
	if ((flags & REQUEST_FILTER) && filter_install(flags) < 0)
		fail(inner, "filter", errno, "the system call filter");
}

/* Before the view: meanwhile the supervisor does what it has to. */
static void hand_out_listeners(struct inner *inner)
{
	char text[512];

	if ((inner->view.request->flags & REQUEST_PROXY) &&
	    listeners_hand_out(&inner->view, INNER_CONTROL, text, sizeof text) < 0)
		fail(inner, "proxy", errno, text);
}

/* And once they are served: nothing that the command does comes to nothing. */
static void await_proxies(struct inner *inner)
{
	struct order go;

	if (inner->view.request->flags & REQUEST_PROXY)
		await(inner, ORDER_GO, &go, sizeof go);
}

static void verify(struct inner *inner)
{
	unsigned flags = inner->view.request->flags;
	char text[512];

	if ((flags & REQUEST_VIEW) && build_view(&inner->view, text, sizeof text) < 0)
		fail(inner, "mount", errno, text);
	/* The launcher has dropped them already, but for those to mount with. */
	if ((flags & (REQUEST_DIRECT | REQUEST_VIEW)) && (flags & REQUEST_FILTER) &&
	    drop_capabilities() < 0)
		fail(inner, "verify", errno, "dropping capabilities");
	if (verify_process(&inner->view, text, sizeof text) < 0 ||
	    verify_checks(&inner->view, text, sizeof text) < 0)
		fail(inner, "verify", 0, text);
}

/* ---- the command ---------------------------------------------------------------- */

static void start_command(struct inner *inner)
{
	const struct message started = { .type = MESSAGE_STARTED };
	struct command_failure failure = { .errnum = 0 };
	struct order order;
	pid_t pid;

	/* Cancelled before it began? Then it does not begin. */
	while (receive(inner, &order, sizeof order, MSG_DONTWAIT))
		obey(inner, &order);
	inner->plan.failure = &failure;
	/*
	 * A fork would copy page tables that the child gives up at once.  An exec that hangs
	 * (on a dead network filesystem) holds us up as well: then the supervisor ends us from
	 * outside.
	 */
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
	if (pid == 0)
		/* It calls nothing but the kernel. */
		command_become(&inner->plan); /* NOLINT(clang-analyzer-unix.Vfork) */
	inner->plan.failure = NULL;       /* vfork is over, and so is the use of our variable */
	if (pid < 0)
		fail(inner, "supervisor", errno, "vfork");
	inner->command = pid;
	if (failure.errnum != 0)
		fail(inner, failure.stage, failure.errnum, inner->plan.argv[0]);
	tell(&started);
	/* The pipes must end when the command's side does. */
	close(INNER_STDIN);
	close(INNER_STDOUT);
	close(INNER_STDERR);
}

static void reap(struct inner *inner)
{
	struct signalfd_siginfo info;
	bool alone;

	while (read(inner->signals, &info, sizeof info) > 0)
		;
	alone = sweep_reap(reaped, inner) == 0;
	if (!inner->exited)
		return;
	if (inner->told && alone)
		finish(inner);
	tell_exited(inner, alone);
	if (alone)
		_exit(0);
}

_Noreturn static void watch(struct inner *inner)
{
	struct order order;

	for (;;) {
		struct pollfd polls[] = {
			{ .fd = INNER_CONTROL, .events = POLLIN },
			{ .fd = inner->signals, .events = POLLIN },
		};

		if (poll(polls, 2, -1) < 0)
			continue;
		if (polls[1].revents != 0)
			reap(inner);
		if (polls[0].revents != 0 && receive(inner, &order, sizeof order, MSG_DONTWAIT))
			obey(inner, &order);
	}
}

/* ---- start ------------------------------------------------------------------------ */

static bool is_socket(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

static void watch_signals(struct inner *inner)
{
	sigset_t all, child;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	inner->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (inner->signals < 0)
		fail(inner, "supervisor", errno, "signalfd");
}

int inner_main(void)
{
	const struct message hello = { .type = MESSAGE_HELLO };
	struct inner inner = { .signals = -1 };
	struct order settings, go;
	const char *wrong;

	if (!is_socket(INNER_CONTROL)) {
		dprintf(2, "execsandbox-helper: not a program to be run by hand\n");
		return 2;
	}
	/* Nobody in the sandbox may look into us, our descriptors and our memory (proc(5)). */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	inner.init = getpid() == 1;
	if (!inner.init) {
		/*
		 * Then nobody but us can end what descends from us: we must outlive a launcher
		 * that was told to die with its parent.  End of file tells us when to end.
		 */
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	}
	syscall(SYS_close_range, INNER_PROGRAM, ~0u, 0);
	dup2(0, 2); /* the launcher's stderr is not ours */
	tell(&hello);
	watch_signals(&inner);
	await(&inner, ORDER_SETTINGS, &settings, sizeof settings);
	wrong = request_view_open(&inner.view, INNER_REQUEST);
	if (wrong != NULL)
		fail(&inner, "supervisor", EINVAL, wrong);
	close(INNER_REQUEST);
	inner.plan.control = INNER_CONTROL;
	inner.plan.mask = (mode_t)settings.umask;
	inner.plan.files = (struct rlimit){ settings.files_soft, settings.files_hard };
	if (command_prepare(&inner.plan, &inner.view) < 0)
		fail(&inner, "supervisor", ENOMEM, "memory");
	if (request_has(&inner.view, REQUEST_CGROUP_PROCESSES))
		await(&inner, ORDER_GO, &go, sizeof go);
	hand_out_listeners(&inner);
	verify(&inner);
	enter_directory(&inner);
	await_proxies(&inner);
	lock_sandbox(&inner);
	start_command(&inner);
	watch(&inner);
}
