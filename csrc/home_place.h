/* Where a run's private home is: HOME and TMPDIR are the directories `home` and `tmp` in it. */
#ifndef EXECSANDBOX_HOME_PLACE_H
#define EXECSANDBOX_HOME_PLACE_H

#include "compat.h"

/*
 * core.private_home(policy, tmpdir) → a new path in /dev/shm, where that is the sandbox's own;
 * else in TMPDIR (the host's; or nil), or in /tmp where that is no directory that this process
 * may write; or nil, err.  Nothing is made.
 */
int home_choose(lua_State *L);

#endif
