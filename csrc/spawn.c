#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

#include "request.h"

enum { SLOTS = 5 };

/*
 * Copies of the descriptors above the numbers that the helper gets them at, so that
 * putting one in place never overwrites another (a host may have 0, 1 and 2 closed,
 * and its socket at 4).
 */
static int copy_above(const struct spawn_descriptors *descriptors, int *copies)
{
	const int sources[SLOTS] = { descriptors->control, descriptors->request, descriptors->input,
		                         descriptors->output, descriptors->error };
	int i;

	for (i = 0; i < SLOTS; i++)
		copies[i] = -1;
	for (i = 0; i < SLOTS; i++) {
		if (sources[i] < 0)
			continue;
		copies[i] = fcntl(sources[i], F_DUPFD_CLOEXEC, SUPERVISOR_FIRST_FREE);
		if (copies[i] < 0)
			return errno;
	}
	return 0;
}

static void close_copies(const int *copies)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		if (copies[i] >= 0)
			close(copies[i]);
}

static int add_descriptors(posix_spawn_file_actions_t *actions, const int *copies)
{
	int i, error = 0;

	for (i = 0; i < 3 && error == 0; i++)
		error = posix_spawn_file_actions_addopen(actions, i, "/dev/null", O_RDWR, 0);
	for (i = 0; i < SLOTS && error == 0; i++) {
		int number = SUPERVISOR_CONTROL + i;
		if (copies[i] >= 0)
			error = posix_spawn_file_actions_adddup2(actions, copies[i], number);
		else
			error = posix_spawn_file_actions_addopen(actions, number, "/dev/null", O_RDWR, 0);
	}
	return error;
}

/* Dispositions are reset by the helper: each takes a call, for which the host would wait. */
static int set_signals(posix_spawnattr_t *attributes)
{
	sigset_t none;
	int error;

	sigemptyset(&none);
	error = posix_spawnattr_setsigmask(attributes, &none);
	if (error == 0)
		error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK);
	return error;
}

static int spawn(const char *program, const int *copies, pid_t *pid)
{
	char *const argv[] = { (char *)"execsandbox-helper", (char *)"supervise", NULL };
	char *const environment[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int error = posix_spawn_file_actions_init(&actions);

	if (error != 0)
		return error;
	error = posix_spawnattr_init(&attributes);
	if (error == 0) {
		error = set_signals(&attributes);
		if (error == 0)
			error = add_descriptors(&actions, copies);
		if (error == 0)
			error = posix_spawn(pid, program, &actions, &attributes, argv, environment);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

int spawn_helper(const char *program, const struct spawn_descriptors *descriptors, pid_t *pid,
                 struct failure *failure)
{
	int copies[SLOTS];
	int error = copy_above(descriptors, copies);

	if (error == 0)
		error = spawn(program, copies, pid);
	close_copies(copies);
	if (error != 0)
		return failure_execution(failure, "helper", error, "cannot start the helper '%s': %s",
		                         program, strerror(error));
	return 0;
}
