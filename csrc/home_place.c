#include "home_place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure_lua.h"
#include "guard.h"
#include "plan.h"
#include "policy_lua.h"

#define PREFIX "execsandbox-home-"

/* What is added to the directory's own path: "/", the name, and room for something in it. */
enum { NAME_SPACE = 256 };

/* Writes canonical DIRECTORY to PATH; 0, or the errno for which nothing can be made there. */
static int look(const char *directory, char path[PATH_MAX])
{
	struct stat status;

	if (directory == NULL || *directory != '/')
		return EINVAL;
	if (realpath(directory, path) == NULL || stat(path, &status) < 0)
		return errno;
	if (!S_ISDIR(status.st_mode))
		return ENOTDIR;
	if (strlen(path) + NAME_SPACE >= PATH_MAX)
		return ENAMETOOLONG;
	if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) < 0)
		return errno;
	return guard_kernels_own(path) ? EPERM : 0;
}

static int unusable(lua_State *L, const char *tmpdir, int error)
{
	struct failure failure;
	bool named = tmpdir != NULL && strcmp(tmpdir, "/tmp") != 0;

	failure_execution(&failure, "home", error,
	                  "there is no place for the private home: %s%s%s/tmp cannot be used: %s",
	                  named ? "TMPDIR (" : "", named ? tmpdir : "",
	                  named ? ") is no directory that may be written, and " : "", strerror(error));
	return push_failure(L, &failure);
}

/*
 * Where the sandbox has a /dev of its own, nobody else has the /dev/shm in it: a directory of
 * the host's would be one that others can remove, and with it what is mounted there.
 */
static bool has_own_dev(const struct policy *policy)
{
	return policy->filesystem != FILESYSTEM_EXTERNAL && !plan_is_direct(policy);
}

int home_choose(lua_State *L)
{
	const struct policy *policy = policy_check(L, 1);
	const char *tmpdir = luaL_optstring(L, 2, NULL);
	char *path = compat_newuserdata(L, PATH_MAX); /* what realpath(3) wants */
	size_t length;
	uint64_t number;
	int error = 0;

	if (has_own_dev(policy))
		snprintf(path, PATH_MAX, "/dev/shm");
	else if ((error = look(tmpdir, path)) == ENOMEM)
		raise_memory(L);
	else if (error != 0)
		error = look("/tmp", path);
	if (error != 0)
		return unusable(L, tmpdir, error);
	if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
		return luaL_error(L, "getrandom: %s", strerror(errno));
	length = strlen(path);
	snprintf(path + length, PATH_MAX - length, "%s" PREFIX "%016llx", length == 1 ? "" : "/",
	         (unsigned long long)number);
	lua_pushstring(L, path);
	return 1;
}
