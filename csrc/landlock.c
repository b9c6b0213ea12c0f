#include "landlock.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif

/* LANDLOCK_CREATE_RULESET_VERSION: report the version, make nothing. */
enum { CREATE_RULESET_VERSION = 1 };

int landlock_abi(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, CREATE_RULESET_VERSION);

	return version > 0 ? (int)version : 0;
}
