#include "scope.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From linux/landlock.h of 6.12; the headers to build with may be older. */
struct ruleset_attributes {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};
#define CREATE_RULESET_VERSION (1u << 0)
#define SCOPE_ABSTRACT_UNIX_SOCKET (1u << 0)

int scope_abstract_sockets(void)
{
	const struct ruleset_attributes attributes = { .scoped = SCOPE_ABSTRACT_UNIX_SOCKET };
	long ruleset, result;
	int saved;

	if (syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION) < 6) {
		errno = ENOSYS;
		return -1;
	}
	ruleset = syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
	if (ruleset < 0)
		return -1;
	result = syscall(SYS_landlock_restrict_self, ruleset, 0);
	saved = errno;
	close((int)ruleset);
	errno = saved;
	return result < 0 ? -1 : 0;
}
