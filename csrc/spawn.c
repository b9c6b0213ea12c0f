#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "request.h"

enum { SLOTS = 5 };

/* What the child needs: it shares our memory, and reports in ERRNUM what kept it from its exec. */
struct child {
	const char *program;
	int sources[SLOTS]; /* of the descriptors from SUPERVISOR_CONTROL on; -1: /dev/null */
	volatile int errnum;
};

/*
 * FD, or a copy of it above the numbers that are given out, so that putting one in place never
 * overwrites another (a host may have 0, 1 and 2 closed, and its socket at 4).  No copy outlives
 * the exec.
 */
static int above(int fd)
{
	return fd < 0 || fd >= SUPERVISOR_FIRST_FREE
	           ? fd
	           : fcntl(fd, F_DUPFD_CLOEXEC, SUPERVISOR_FIRST_FREE);
}

static int place_descriptors(const int *sources)
{
	int lifted[SLOTS];
	int null = above(open("/dev/null", O_RDWR | O_CLOEXEC));
	int i;

	if (null < 0)
		return -1;
	for (i = 0; i < SLOTS; i++) {
		lifted[i] = sources[i] < 0 ? null : above(sources[i]);
		if (lifted[i] < 0)
			return -1;
	}
	for (i = 0; i < 3; i++)
		if (dup2(null, i) < 0)
			return -1;
	for (i = 0; i < SLOTS; i++)
		if (dup2(lifted[i], SUPERVISOR_CONTROL + i) < 0)
			return -1;
	return 0;
}

/* It calls nothing but the kernel. */
_Noreturn static void become_helper(struct child *child)
{
	char *const argv[] = { (char *)"execsandbox-helper", (char *)"supervise", NULL };
	char *const environment[] = { NULL };

	if (place_descriptors(child->sources) == 0)
		execve(child->program, argv, environment);
	child->errnum = errno;
	_exit(127);
}

/*
 * All signals, those that the C library keeps to itself included: no handler of the host's may
 * run in a child that shares its memory, and nothing may end the helper before it listens.
 */
static void block_signals(uint64_t *before)
{
	const uint64_t all = ~(uint64_t)0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, before, sizeof all);
}

static void restore_signals(const uint64_t *before)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof *before);
}

/*
 * posix_spawn(3) does the same with a stack of its own for the child, and looks at every
 * signal's disposition: that doubles the time for which the host waits.  The helper resets
 * dispositions itself.
 */
static int spawn(struct child *child, pid_t *pid)
{
	uint64_t before;
	pid_t started;

	block_signals(&before);
	started = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
	if (started == 0)
		become_helper(child); /* NOLINT(clang-analyzer-unix.Vfork) */
	if (started < 0)
		child->errnum = errno;
	restore_signals(&before);
	if (started > 0 && child->errnum != 0)
		while (waitpid(started, NULL, 0) < 0 && errno == EINTR)
			;
	*pid = started;
	return child->errnum;
}

int spawn_helper(const char *program, const struct spawn_descriptors *descriptors, pid_t *pid,
                 struct failure *failure)
{
	struct child child = {
		.program = program,
		.sources = { descriptors->control, descriptors->request, descriptors->input,
		             descriptors->output, descriptors->error },
	};
	int error = spawn(&child, pid);

	if (error != 0) {
		*pid = 0;
		return failure_execution(failure, "helper", error, "cannot start the helper '%s': %s",
		                         program, strerror(error));
	}
	return 0;
}
