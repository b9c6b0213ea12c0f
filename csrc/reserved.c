#include "reserved.h"

#include <stdbool.h>
#include <string.h>

/* Of a path below /proc: whether its first component is a process's. */
static bool names_process(const char *path)
{
	size_t length = strcspn(path, "/");

	return strspn(path, "0123456789") == length || (length == 4 && memcmp(path, "self", 4) == 0) ||
	       (length == 11 && memcmp(path, "thread-self", 11) == 0);
}

int reserved_check(const char *written, const char *path, struct failure *failure)
{
	if (strcmp(path, "/dev") == 0)
		return failure_policy(
			failure,
			"A rule names %s: /dev is always the sandbox's own; use `devices` to add "
			"nodes.",
			written);
	if (strcmp(path, "/proc") == 0)
		return failure_policy(
			failure,
			"A rule names %s: /proc is always the sandbox's own; use `mount_proc` to "
			"leave it out.",
			written);
	if (strncmp(path, "/proc/", 6) == 0 && names_process(path + 6))
		return failure_policy(failure,
		                      "A rule names %s: processes are not the same inside the sandbox and "
		                      "outside.",
		                      written);
	return 0;
}
