/*
 * A pids cgroup of the run's own: the limit on processes where RLIMIT_NPROC does not
 * bind (a host that is uid 0).
 */
#ifndef EXECSANDBOX_CGROUP_H
#define EXECSANDBOX_CGROUP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup {
	int parent;    /* -1: there is none */
	int directory; /* locked exclusively while in use */
	char name[64];
};

#define CGROUP_NONE                                                                                \
	{                                                                                              \
		.parent = -1, .directory = -1                                                              \
	}

/*
 * Makes a cgroup for at most PROCESSES processes besides PID itself and moves PID there.
 * Returns 0, or -1 with errno; the cgroup must be removed in both cases.
 */
int cgroup_enter(struct cgroup *cgroup, pid_t pid, uint64_t processes, uint32_t run_id);

/* Removes it, once its processes are gone. Idempotent. */
void cgroup_remove(struct cgroup *cgroup);

#endif
