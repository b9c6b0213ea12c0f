#include "rlimits.h"

#include <errno.h>
#include <stdbool.h>

/* Sets soft and hard to VALUE; the CPU limit's hard one is EXTRA later. */
static int limit(int resource, uint64_t value, uint64_t extra)
{
	struct rlimit now, wanted;

	if (getrlimit(resource, &now) < 0)
		return -1;
	if (value > now.rlim_max) {
		errno = EPERM;
		return -1;
	}
	wanted.rlim_cur = value;
	wanted.rlim_max = now.rlim_max - value < extra ? now.rlim_max : value + extra;
	return setrlimit(resource, &wanted);
}

static bool given(const struct request *request, enum request_limit number)
{
	return request->limits[number] != REQUEST_UNLIMITED;
}

int limits_apply(const struct request *request, const struct rlimit *files)
{
	const uint64_t *limits = request->limits;

	/*
	 * At the soft CPU limit SIGXCPU says what happened; who ignores that gets SIGKILL
	 * at the hard one (setrlimit(2)).
	 */
	if (given(request, REQUEST_LIMIT_CPU) && limit(RLIMIT_CPU, limits[REQUEST_LIMIT_CPU], 1) < 0)
		return -1;
	if (given(request, REQUEST_LIMIT_MEMORY) &&
	    limit(RLIMIT_AS, limits[REQUEST_LIMIT_MEMORY], 0) < 0)
		return -1;
	/* One more, for the inner stage: it counts in the same user namespace. */
	if (given(request, REQUEST_LIMIT_PROCESSES) && !(request->flags & REQUEST_CGROUP_PROCESSES) &&
	    limit(RLIMIT_NPROC, limits[REQUEST_LIMIT_PROCESSES] + 1, 0) < 0)
		return -1;
	if (given(request, REQUEST_LIMIT_FILES)) {
		if (limit(RLIMIT_NOFILE, limits[REQUEST_LIMIT_FILES], 0) < 0)
			return -1;
	} else if (setrlimit(RLIMIT_NOFILE, files) < 0) {
		return -1;
	}
	if (given(request, REQUEST_LIMIT_FILE_SIZE) &&
	    limit(RLIMIT_FSIZE, limits[REQUEST_LIMIT_FILE_SIZE], 0) < 0)
		return -1;
	if (given(request, REQUEST_LIMIT_CORE) && limit(RLIMIT_CORE, limits[REQUEST_LIMIT_CORE], 0) < 0)
		return -1;
	return 0;
}
