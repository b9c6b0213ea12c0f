#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inner.h"

#define INNER_PATH "/proc/self/fd/8"
_Static_assert(INNER_PROGRAM == 8, "INNER_PATH names it");
_Static_assert(INNER_ARGUMENTS == 9, "the command line names it");
_Static_assert((int)SUPERVISOR_REQUEST == (int)INNER_REQUEST &&
                   (int)SUPERVISOR_STDIN == (int)INNER_STDIN,
               "these two stay where they are");
_Static_assert((int)SUPERVISOR_FIRST_FREE == (int)INNER_PROGRAM, "launch_prepare relies on it");

static int write_whole(int fd, const char *bytes, size_t length)
{
	ssize_t written;

	while (length > 0) {
		written = write(fd, bytes, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return -1;
		bytes += written;
		length -= (size_t)written;
	}
	return 0;
}

static int open_arguments(const struct request_view *view)
{
	const struct request_list *list = &view->request->arguments;
	int fd = memfd_create("execsandbox-arguments", MFD_CLOEXEC);

	if (fd < 0 || write_whole(fd, request_bytes(view, list), list->bytes.length) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return fd;
}

int launch_prepare(struct launch *launch, const struct request_view *view)
{
	static char args[] = "--args", number[] = "9", end[] = "--", self[] = INNER_PATH,
				inner[] = "inner";
	const struct request *request = view->request;
	size_t count;
	char **words;

	if (request->flags & REQUEST_DIRECT)
		return 0;
	launch->program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	launch->arguments = open_arguments(view);
	if (launch->program < 0 || launch->arguments < 0)
		return -1;
	if (launch->program != INNER_PROGRAM || launch->arguments != INNER_ARGUMENTS) {
		errno = EBADF;
		return -1;
	}
	words = request_vector(view, &request->launcher, 5, &count);
	if (words == NULL)
		return -1;
	/* What follows "--" must be on the real command line: bubblewrap parses it before --args. */
	words[count++] = args;
	words[count++] = number;
	words[count++] = end;
	words[count++] = request->inner_path == 0 ? self : (char *)view->request + request->inner_path;
	words[count] = inner;
	launch->words = words;
	return 0;
}

/* Gives FD the number TARGET, open across exec. */
static int place(int fd, int target)
{
	if (fd == target)
		return fcntl(fd, F_SETFD, 0);
	return dup2(fd, target);
}

/*
 * The supervisor's own descriptors, all close-on-exec, are either at the number they keep
 * or above those that are given out here, so that no step overwrites what a later one needs.
 */
static int place_all(const struct launch *launch)
{
	if (place(launch->words_of_its_own, 2) < 0 || place(launch->control, INNER_CONTROL) < 0 ||
	    place(SUPERVISOR_REQUEST, INNER_REQUEST) < 0 || place(SUPERVISOR_STDIN, INNER_STDIN) < 0 ||
	    place(launch->output, INNER_STDOUT) < 0 || place(launch->error, INNER_STDERR) < 0)
		return -1;
	if (launch->words == NULL)
		return 0;
	return place(launch->program, INNER_PROGRAM) < 0 ||
	               place(launch->arguments, INNER_ARGUMENTS) < 0
	           ? -1
	           : 0;
}

/* The launcher reads each to its end, which is at its start, and closes it. */
static int open_empty_files(const struct launch *launch, uint32_t count)
{
	struct rlimit files = launch->files;
	uint32_t made;
	int fd;

	if (count == 0)
		return 0;
	files.rlim_cur = files.rlim_max;
	if (count + EMPTY_FILE_FIRST + 64 > launch->files.rlim_cur)
		setrlimit(RLIMIT_NOFILE, &files);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	for (made = 0; made < count; made++) {
		/* The lowest free number from there on: everything above was closed. */
		if (fcntl(fd, F_DUPFD, EMPTY_FILE_FIRST + (int)made) != EMPTY_FILE_FIRST + (int)made)
			return -1;
	}
	return 0;
}

static int prepare_child(const struct launch *launch, const struct request_view *view)
{
	sigset_t none;

	if (place_all(launch) < 0)
		return -1;
	if (syscall(SYS_close_range, launch->words == NULL ? INNER_PROGRAM : INNER_ARGUMENTS + 1, ~0u,
	            0) < 0)
		return -1;
	if (launch->words == NULL)
		return 0;
	if (open_empty_files(launch, view->request->empty_files) < 0)
		return -1;
	umask(launch->mask);
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Shares our memory until its exec (vfork(2)): it calls the kernel, and writes one number. */
static pid_t start_launcher(struct launch *launch, const struct request_view *view)
{
	char *environment[] = { NULL };
	volatile int errnum = 0;
	/* posix_spawn(3) cannot put descriptors and limits in place as it is done here. */
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */

	if (pid == 0) {
		/* It calls nothing but the kernel. */
		if (prepare_child(launch, view) == 0) /* NOLINT(clang-analyzer-unix.Vfork) */
			execve(launch->words[0], launch->words, environment);
		errnum = errno;
		_exit(127);
	}
	if (pid > 0 && errnum != 0) {
		waitpid(pid, NULL, 0);
		launch->errnum = errno = errnum;
		return -1;
	}
	return pid;
}

pid_t launch_start(struct launch *launch, const struct request_view *view)
{
	pid_t pid;

	launch->errnum = 0;
	if (launch->words != NULL)
		return start_launcher(launch, view);
	pid = fork();
	if (pid == 0) {
		if (prepare_child(launch, view) < 0)
			_exit(126);
		_exit(inner_main());
	}
	return pid;
}
