#include "filtering.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "close_keeping_errno.h"
#include "filter_wire.h"

/* Above the numbers that the program gets its descriptors at. */
enum { FILTER_FIRST_FREE = FILTER_REPORT + 1 };

static int send_listeners(int control, const int *listeners, unsigned count)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(FILTER_LISTENERS_MOST * sizeof(int))];
	} rights;
	char byte = 0;
	struct iovec part = { .iov_base = &byte, .iov_len = sizeof byte };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &rights,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};
	struct cmsghdr *header;

	if (count == 0 || count > FILTER_LISTENERS_MOST) {
		errno = EINVAL;
		return -1;
	}
	memset(&rights, 0, sizeof rights);
	header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(header), listeners, count * sizeof(int));
	return sendmsg(control, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* In the child, which has our memory: nothing but system calls. */
static int place_all(const int *copies)
{
	sigset_t none;
	int number;

	for (number = 0; number < 3; number++)
		if (dup2(copies[number], FILTER_CONTROL + number) < 0)
			return -1;
	/* 0, 1 and 2 are /dev/null already. */
	if (syscall(SYS_close_range, FILTER_FIRST_FREE, ~0u, 0) < 0)
		return -1;
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL);
}

static pid_t start(const char *program, const int *copies)
{
	static char name[] = "execsandbox-proxy", serve[] = "serve";
	char *words[] = { name, serve, NULL }, *environment[] = { NULL };
	volatile int errnum = 0;
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */

	if (pid == 0) {
		if (place_all(copies) == 0) /* NOLINT(clang-analyzer-unix.Vfork) */
			execve(program, words, environment);
		errnum = errno;
		_exit(127);
	}
	if (pid > 0 && errnum != 0) {
		waitpid(pid, NULL, 0);
		errno = errnum;
		return -1;
	}
	return pid;
}

/* Copies out of the way, so that no dup2 overwrites what a later one needs. */
static int copy_above(const int *sources, int *copies)
{
	int number;

	for (number = 0; number < 3; number++) {
		copies[number] = fcntl(sources[number], F_DUPFD_CLOEXEC, FILTER_FIRST_FREE);
		if (copies[number] < 0)
			return -1;
	}
	return 0;
}

pid_t filtering_start(const char *program, int config, int report, const int *listeners,
                      unsigned count, int *control)
{
	int ends[2], copies[3] = { -1, -1, -1 }, number;
	pid_t pid = -1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	if (send_listeners(ends[0], listeners, count) == 0 &&
	    copy_above((int[]){ ends[1], config, report }, copies) == 0)
		pid = start(program, copies);
	for (number = 0; number < 3; number++)
		close_keeping_errno(copies[number]);
	close_keeping_errno(ends[1]);
	if (pid < 0)
		close_keeping_errno(ends[0]);
	else
		*control = ends[0];
	return pid;
}
