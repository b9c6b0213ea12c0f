#include "sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "entry.h"

enum {
	TABLE_SIZE = 1 << 16, /* processes looked at in one pass; the rest in the next */
	STOP_PASSES = 64,
	PAUSE_NS = 1000000,
};

struct process {
	pid_t pid;
	pid_t parent;
	pid_t group;
	char state;
	bool ours; /* a descendant */
};

int sweep_reap(sweep_reaped reaped, void *context)
{
	struct rusage usage;
	int status;
	pid_t pid;

	for (;;) {
		pid = wait4(-1, &status, WNOHANG | __WALL, &usage);
		if (pid == 0)
			return 1;
		if (pid > 0)
			reaped(context, pid, status, &usage);
		else if (errno != EINTR)
			return 0;
	}
}

/* Fills PROCESS from /proc/NAME/stat (proc_pid_stat(5)); false where it is gone. */
static bool read_process(int proc, const char *name, struct process *process)
{
	char path[32], text[512];
	const char *at;
	char *next;
	ssize_t length;
	int fd;

	length = snprintf(path, sizeof path, "%s/stat", name);
	if (length < 0 || (size_t)length >= sizeof path)
		return false;
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, text, sizeof text - 1);
	close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	/* The name before it may hold anything, parentheses and spaces too. */
	at = strrchr(text, ')');
	if (at == NULL || at[1] != ' ' || at[2] == '\0' || at[3] != ' ')
		return false;
	process->pid = (pid_t)strtol(name, NULL, 10);
	process->state = at[2];
	process->parent = (pid_t)strtol(at + 4, &next, 10);
	process->group = (pid_t)strtol(next, NULL, 10);
	process->ours = false;
	return true;
}

/* Reads the process table, in ascending order as /proc lists it. */
static size_t read_table(int proc, struct process *table)
{
	_Alignas(struct entry) char buffer[8192];
	size_t count = 0;
	long length, at;

	if (lseek(proc, 0, SEEK_SET) < 0)
		return 0;
	while ((length = syscall(SYS_getdents64, proc, buffer, sizeof buffer)) > 0) {
		for (at = 0; at < length;) {
			const struct entry *entry = (const struct entry *)(const void *)(buffer + at);

			if (entry->name[0] >= '1' && entry->name[0] <= '9' && count < TABLE_SIZE &&
			    read_process(proc, entry->name, &table[count]))
				count++;
			at += entry->length;
		}
	}
	return count;
}

static const struct process *find(const struct process *table, size_t count, pid_t pid)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && table[low].pid == pid ? &table[low] : NULL;
}

/* Marks the descendants. Parents mostly have the lower number: few rounds are needed. */
static void mark_ours(struct process *table, size_t count)
{
	const struct process *parent;
	pid_t self = getpid();
	bool changed = true;
	size_t number;

	while (changed) {
		changed = false;
		for (number = 0; number < count; number++) {
			if (table[number].ours || table[number].pid == self)
				continue;
			parent = find(table, count, table[number].parent);
			if (table[number].parent == self || (parent != NULL && parent->ours))
				table[number].ours = changed = true;
		}
	}
}

static size_t scan(int proc, struct process *table)
{
	size_t count = read_table(proc, table);

	mark_ours(table, count);
	return count;
}

static bool alive(const struct process *process)
{
	return process->ours && process->state != 'Z' && process->state != 'X';
}

static bool stopped(const struct process *process)
{
	return process->state == 'T' || process->state == 't';
}

/* Returns how many were not stopped yet. */
static size_t stop_all(const struct process *table, size_t count)
{
	pid_t own = getpgrp();
	size_t number, fresh = 0;

	for (number = 0; number < count; number++) {
		const struct process *process = &table[number];

		if (!alive(process) || stopped(process))
			continue;
		/*
		 * The kernel signals a group at one instant with respect to fork(2), so no
		 * member can be missed.  A descendant's group is ours alone, because the
		 * command began a session of its own; all but the one that we are in.
		 */
		if (process->group > 1 && process->group != own)
			kill(-process->group, SIGSTOP);
		if (kill(process->pid, SIGSTOP) == 0)
			fresh++;
	}
	return fresh;
}

/* Returns whether any could be signalled. */
static bool kill_all(const struct process *table, size_t count)
{
	bool any = false;
	size_t number;

	for (number = 0; number < count; number++) {
		/* ESRCH: it ended meanwhile, which is as good. */
		if (alive(&table[number]) && (kill(table[number].pid, SIGKILL) == 0 || errno == ESRCH))
			any = true;
		else if (table[number].ours && !alive(&table[number]))
			any = true;
	}
	return any;
}

static void wait_for_child(long nanoseconds)
{
	const struct timespec pause = { .tv_nsec = nanoseconds };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, &pause);
}

static struct process *new_table(void)
{
	void *table = mmap(NULL, TABLE_SIZE * sizeof(struct process), PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return table == MAP_FAILED ? NULL : table;
}

static void free_table(struct process *table)
{
	munmap(table, TABLE_SIZE * sizeof *table);
}

void sweep_signal(int signum)
{
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct process *table = new_table();
	size_t count, number;

	if (proc >= 0 && table != NULL) {
		count = scan(proc, table);
		for (number = 0; number < count; number++) {
			if (!alive(&table[number]))
				continue;
			kill(table[number].pid, signum);
			/* A stopped process would not see it. */
			kill(table[number].pid, SIGCONT);
		}
	}
	if (table != NULL)
		free_table(table);
	if (proc >= 0)
		close(proc);
}

struct counter {
	sweep_reaped reaped;
	void *context;
	unsigned killed;
};

static void count_killed(void *context, pid_t pid, int status, const struct rusage *usage)
{
	struct counter *counter = context;

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		counter->killed++;
	counter->reaped(counter->context, pid, status, usage);
}

/*
 * Stop first, kill then: a process that is stopped cannot fork and keeps its place in
 * the process table, so that a fork bomb runs against its limit; a killed one makes room
 * for the next.
 */
static void sweep_passes(int proc, struct process *table, struct counter *counter)
{
	unsigned stops = 0, failures = 0;
	size_t count;

	while (sweep_reap(count_killed, counter) == 1) {
		count = scan(proc, table);
		if (stops < STOP_PASSES && stop_all(table, count) > 0) {
			stops++;
			continue;
		}
		stops = 0;
		/*
		 * What belongs to another user (set-id programs of a run without no_new_privs)
		 * cannot be killed by us: waiting for it would never end.
		 */
		failures = kill_all(table, count) ? 0 : failures + 1;
		if (failures > 100)
			return;
		wait_for_child(PAUSE_NS);
	}
}

unsigned sweep_kill(pid_t known, sweep_reaped reaped, void *context)
{
	struct counter counter = { reaped, context, 0 };
	struct process *table;
	int proc;

	if (sweep_reap(reaped, context) == 0)
		return 0;
	proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	table = new_table();
	if (proc >= 0 && table != NULL) {
		sweep_passes(proc, table, &counter);
	} else {
		if (known > 0)
			kill(known, SIGKILL), kill(-known, SIGKILL);
		while (sweep_reap(count_killed, &counter) == 1)
			wait_for_child(PAUSE_NS);
	}
	if (table != NULL)
		free_table(table);
	if (proc >= 0)
		close(proc);
	return counter.killed;
}
