/*
 * Kills a program at a chosen moment, and tells how long it takes until everything that descends
 * from it is gone:
 *
 *   keeper BYTES MICROSECONDS PROGRAM [ARGUMENT...]
 *
 * The program gets SIGKILL so many microseconds after it wrote so many bytes to its standard
 * output. Whatever it leaves becomes a child of this process (PR_SET_CHILD_SUBREAPER, prctl(2)), in
 * whatever session or process group it is. Prints milliseconds; exits with 1, after killing them,
 * where children are left after five seconds.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READ_SECONDS = 30, LEFT_MILLISECONDS = 5000 };

static long long now_microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void pause_microseconds(long microseconds)
{
	struct timespec time = { microseconds / 1000000, microseconds % 1000000 * 1000 };

	nanosleep(&time, NULL);
}

/* Reads until COUNT bytes came or the program has ended. */
static void await_bytes(int fd, long count)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	char byte;

	while (count > 0 && poll(&wait, 1, READ_SECONDS * 1000) > 0 && read(fd, &byte, 1) == 1)
		count--;
}

static pid_t start(char **argv, int *output)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(ends[1]);
	*output = ends[0];
	return pid;
}

/* Kills the children that are left, with their names for whoever reads this. */
static void kill_children(void)
{
	char path[64];
	FILE *file;
	int pid;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	file = fopen(path, "r");
	while (file != NULL && fscanf(file, "%d", &pid) == 1) {
		printf("left: %d\n", pid);
		kill(pid, SIGKILL);
	}
	if (file != NULL)
		fclose(file);
}

int main(int argc, char **argv)
{
	long long killed;
	int output = -1;
	pid_t pid, ended;

	if (argc < 4)
		return 2;
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	pid = start(argv + 3, &output);
	if (pid < 0) {
		perror("keeper");
		return 2;
	}
	await_bytes(output, atol(argv[1]));
	pause_microseconds(atol(argv[2]));
	kill(pid, SIGKILL);
	killed = now_microseconds();
	while ((ended = waitpid(-1, NULL, WNOHANG)) >= 0) {
		if (now_microseconds() - killed > LEFT_MILLISECONDS * 1000LL) {
			kill_children();
			return 1;
		}
		if (ended == 0)
			pause_microseconds(500);
	}
	printf("%lld\n", (now_microseconds() - killed) / 1000);
	return 0;
}
