#include "command.h"

#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "protocol.h"
#include "rlimits.h"

/* As execvp(3) where PATH is not set. */
#define DEFAULT_PATH "/bin:/usr/bin"

int command_prepare(struct command_plan *plan, const struct request_view *view)
{
	const struct request *request = view->request;
	char **variable;

	plan->view = view;
	plan->argv = request_vector(view, &request->argv, 0, NULL);
	plan->environment = request_vector(view, &request->environment, 0, NULL);
	if (plan->argv == NULL || plan->environment == NULL)
		return -1;
	plan->search_path = DEFAULT_PATH;
	for (variable = plan->environment; *variable != NULL; variable++) {
		if (strncmp(*variable, "PATH=", 5) == 0) {
			plan->search_path = *variable + 5;
			break;
		}
	}
	return 0;
}

_Noreturn static void fail(const struct command_plan *plan, const char *stage, int errnum)
{
	plan->failure->stage = stage;
	plan->failure->errnum = errnum;
	_exit(127);
}

static bool is_missing(int errnum)
{
	return errnum == ENOENT || errnum == ENOTDIR || errnum == ENAMETOOLONG;
}

/*
 * Executes PATH; returns errno.  ENOENT may mean that the interpreter of what is there is
 * missing (execve(2)): *THERE tells the two apart.
 */
static int execute(const struct command_plan *plan, const char *path, bool *there)
{
	struct stat status;
	int errnum;

	execve(path, plan->argv, plan->environment);
	errnum = errno;
	/* EACCES may also say that a directory on the way cannot be searched. */
	*there = (!is_missing(errnum) && errnum != EACCES) || stat(path, &status) == 0;
	return errnum;
}

/*
 * The search of execvp(3), but in the PATH that the command will have, and without its
 * fallback to a shell for files that are no programs.
 */
_Noreturn static void search(const struct command_plan *plan)
{
	static char path[8192];
	const char *name = plan->argv[0];
	const char *at = plan->search_path;
	size_t name_length = strlen(name);
	int errnum, denied = 0;
	bool there;

	for (;;) {
		const char *end = strchrnul(at, ':');
		size_t length = (size_t)(end - at);

		if (length + name_length + 2 <= sizeof path) {
			memcpy(path, at, length);
			/* An empty element is the working directory. */
			if (length > 0)
				path[length++] = '/';
			memcpy(path + length, name, name_length + 1);
			errnum = execute(plan, path, &there);
			if (there && errnum != EACCES)
				fail(plan, "exec", errnum);
			if (there)
				denied = errnum;
		}
		if (*end == '\0')
			break;
		at = end + 1;
	}
	if (denied != 0)
		fail(plan, "exec", denied);
	fail(plan, "find-program", ENOENT);
}

_Noreturn static void execute_argv(const struct command_plan *plan)
{
	const char *name = plan->argv[0];
	bool there;
	int errnum;

	if (name[0] == '\0')
		fail(plan, "find-program", ENOENT);
	if (strchr(name, '/') == NULL)
		search(plan);
	errnum = execute(plan, name, &there);
	fail(plan, there ? "exec" : "find-program", errnum);
}

_Noreturn void command_become(const struct command_plan *plan)
{
	const struct message starting = { .type = MESSAGE_STARTING };
	sigset_t none;

	/* A session of its own: no controlling terminal, and a group that signals can name. */
	if (setsid() < 0)
		fail(plan, "exec", errno);
	if (dup2(INNER_STDIN, 0) < 0 || dup2(INNER_STDOUT, 1) < 0 || dup2(INNER_STDERR, 2) < 0)
		fail(plan, "exec", errno);
	/* The rest ends with the exec. */
	if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		fail(plan, "exec", errno);
	/* Its credentials tell the supervisor our process id (unix(7)). */
	if (send(plan->control, &starting, sizeof starting, MSG_NOSIGNAL) < 0)
		fail(plan, "supervisor", errno);
	umask(plan->mask);
	if (limits_apply(plan->view->request, &plan->files) < 0)
		fail(plan, "limits", errno);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execute_argv(plan);
}
