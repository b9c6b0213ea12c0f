/*
 * A Lua interpreter that can fork, as servers do that prepare everything before they split:
 *
 *   forking SCRIPT [ARGUMENT...]
 *
 * SCRIPT has `fork()`, which returns the child's process id, or 0 in the child; `wait(pid)`, which
 * returns its wait status; and `zombies()`, the number of ended children that nobody waited for.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int do_fork(lua_State *L)
{
	fflush(NULL);
	lua_pushinteger(L, fork());
	return 1;
}

static int do_wait(lua_State *L)
{
	int status = 0;

	waitpid((pid_t)luaL_checkinteger(L, 1), &status, 0);
	lua_pushinteger(L, status);
	return 1;
}

static int zombies(lua_State *L)
{
	siginfo_t info;
	int count = 0;

	/* WNOWAIT leaves it as it is: then there is no second one to see before the first is gone. */
	info.si_pid = 0;
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0)
		count++;
	lua_pushinteger(L, count);
	return 1;
}

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();
	int i, status;

	if (L == NULL || argc < 2)
		return 2;
	luaL_openlibs(L);
	lua_register(L, "fork", do_fork);
	lua_register(L, "wait", do_wait);
	lua_register(L, "zombies", zombies);
	status = luaL_loadfile(L, argv[1]);
	for (i = 2; status == 0 && i < argc; i++)
		lua_pushstring(L, argv[i]);
	if (status == 0)
		status = lua_pcall(L, argc - 2, 0, 0);
	if (status != 0)
		fprintf(stderr, "forking: %s\n", lua_tostring(L, -1));
	lua_close(L);
	return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
