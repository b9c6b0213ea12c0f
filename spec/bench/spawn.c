/*
 * What starting a program costs without a sandbox:
 *
 *   spawn COUNT PROGRAM [ARGUMENT...]
 *   spawn -a COUNT PROGRAM [ARGUMENT...]
 *
 * starts it COUNT times with posix_spawn. Without -a each is waited for before the next, and every
 * time is printed in seconds, one a line; with -a all are started, then all are waited for, and the
 * one time that took is printed. A start that fails, or an exit status other than 0, ends it with
 * status 1: a benchmark of something that did not run is none.
 */
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void start(char **argv)
{
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) == 0)
		return;
	fprintf(stderr, "spawn: %s cannot be started\n", argv[0]);
	exit(1);
}

static void end(char **argv)
{
	int status;

	if (wait(&status) > 0 && status == 0)
		return;
	fprintf(stderr, "spawn: %s did not end with 0\n", argv[0]);
	exit(1);
}

static void one_by_one(long count, char **argv)
{
	while (count-- > 0) {
		double begin = now();

		start(argv);
		end(argv);
		printf("%.9f\n", now() - begin);
	}
}

static void at_once(long count, char **argv)
{
	double begin = now();
	long number;

	for (number = 0; number < count; number++)
		start(argv);
	for (number = 0; number < count; number++)
		end(argv);
	printf("%.9f\n", now() - begin);
}

int main(int argc, char **argv)
{
	bool all = argc > 1 && strcmp(argv[1], "-a") == 0;
	char **words = argv + (all ? 2 : 1);
	long count = words < argv + argc ? strtol(words[0], NULL, 10) : 0;

	if (count <= 0 || words + 1 >= argv + argc) {
		fprintf(stderr, "usage: spawn [-a] COUNT PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	if (all)
		at_once(count, words + 1);
	else
		one_by_one(count, words + 1);
	return 0;
}
