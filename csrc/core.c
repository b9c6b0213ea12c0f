/*
 * The C core as Lua sees it: the module execsandbox.core.  What users call is in
 * lua/execsandbox; this table is private to it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture.h"
#include "compat.h"
#include "failure_lua.h"
#include "home_place.h"
#include "launch.h"
#include "policy_lua.h"
#include "policy_parts.h"
#include "run.h"

__attribute__((visibility("default"))) int luaopen_execsandbox_core(lua_State *L);

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

extern char **environ;

/* core.environment() → list of "NAME=value" of this process */
static int environment(lua_State *L)
{
	int i;

	lua_newtable(L);
	for (i = 0; environ != NULL && environ[i] != NULL; i++) {
		lua_pushstring(L, environ[i]);
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

/* core.current_directory() → absolute path, or nil */
static int current_directory(lua_State *L)
{
	char *path = compat_newuserdata(L, PATH_MAX);

	if (getcwd(path, PATH_MAX) == NULL)
		return 0;
	lua_pushstring(L, path);
	return 1;
}

/* core.canonical(path) → what realpath(3) says, or nil where there is no such thing */
static int canonical(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	char *resolved = compat_newuserdata(L, PATH_MAX); /* what realpath(3) wants */

	if (realpath(path, resolved) == NULL) {
		if (errno == ENOMEM)
			raise_memory(L);
		return 0;
	}
	lua_pushstring(L, resolved);
	return 1;
}

/* core.executable(path) → whether this process may execute the regular file */
static int executable(lua_State *L)
{
	lua_pushboolean(L, access(luaL_checkstring(L, 1), X_OK) == 0);
	return 1;
}

/* core.library() → path by which this shared object was loaded, or nil (dladdr(3)) */
static int library(lua_State *L)
{
	Dl_info info;

	if (dladdr((void *)(size_t)&luaopen_execsandbox_core, &info) == 0 || info.dli_fname == NULL)
		return 0;
	lua_pushstring(L, info.dli_fname);
	return 1;
}

/* core.secure() → whether this is a set-id process, whose environment is not to be trusted */
static int secure(lua_State *L)
{
	lua_pushboolean(L, getauxval(AT_SECURE) != 0);
	return 1;
}

/* core.mount_calls() → whether the kernel has the calls that mount by object (5.12) */
static int mount_calls(lua_State *L)
{
	long result = syscall(SYS_mount_setattr, -1, "", 0, NULL, (size_t)0);

	lua_pushboolean(L, !(result < 0 && errno == ENOSYS));
	return 1;
}

/* core.network(policy) → its mode, and whether it is the filtering proxy's */
static int network(lua_State *L)
{
	const struct policy *policy = policy_check(L, 1);

	lua_pushstring(L, policy_network_words[policy->network]);
	lua_pushboolean(L, policy->network_filtering);
	return 2;
}

static const luaL_Reg functions[] = { { "policy", policy_new },
	                                  { "prepare", launch_prepare },
	                                  { "plan", launch_plan },
	                                  { "block", run_block },
	                                  { "now", run_now },
	                                  { "error", failure_new },
	                                  { "decode", capture_decode },
	                                  { "environment", environment },
	                                  { "private_home", home_choose },
	                                  { "current_directory", current_directory },
	                                  { "canonical", canonical },
	                                  { "executable", executable },
	                                  { "library", library },
	                                  { "secure", secure },
	                                  { "mount_calls", mount_calls },
	                                  { "network", network },
	                                  { NULL, NULL } };

int luaopen_execsandbox_core(lua_State *L)
{
	policy_register(L);
	run_register(L);
	capture_register(L);
	launch_register(L);
	lua_newtable(L);
	compat_setfuncs(L, functions);
	return 1;
}
