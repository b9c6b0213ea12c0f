/*
 * What starting a program costs without a sandbox:
 *
 *   spawn COUNT PROGRAM [ARGUMENT...]
 *
 * starts it COUNT times with posix_spawn, waits for each, and prints every time in seconds, one a
 * line. A start that fails, or an exit status other than 0, ends it with status 1: a benchmark of
 * something that did not run is none.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? strtol(argv[1], NULL, 10) : 0;

	if (count <= 0) {
		fprintf(stderr, "usage: spawn COUNT PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	while (count-- > 0) {
		double begin = now();
		int status;
		pid_t pid;

		if (posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ) != 0 ||
		    waitpid(pid, &status, 0) != pid || status != 0) {
			fprintf(stderr, "spawn: %s did not end with 0\n", argv[2]);
			return 1;
		}
		printf("%.9f\n", now() - begin);
	}
	return 0;
}
