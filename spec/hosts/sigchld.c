/*
 * A Lua interpreter that treats SIGCHLD as real hosts do:
 *
 *   sigchld ignore|reap SCRIPT [ARGUMENT...]
 *
 * ignore: the kernel reaps every child by itself (sigaction(2)).  reap: a handler reaps whatever
 * has ended, whoever started it, and counts; SCRIPT reads the count as `reaped()`.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static volatile sig_atomic_t count;

static void reap(int signum)
{
	int saved = errno;

	(void)signum;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		count++;
	errno = saved;
}

static int reaped(lua_State *L)
{
	lua_pushinteger(L, count);
	return 1;
}

int main(int argc, char **argv)
{
	struct sigaction action;
	lua_State *L = luaL_newstate();
	int i, status;

	if (L == NULL || argc < 3)
		return 2;
	memset(&action, 0, sizeof action);
	sigemptyset(&action.sa_mask);
	/* Without SA_RESTART: the host's own calls are interrupted as well. */
	action.sa_handler = strcmp(argv[1], "ignore") == 0 ? SIG_IGN : reap;
	sigaction(SIGCHLD, &action, NULL);
	luaL_openlibs(L);
	lua_register(L, "reaped", reaped);
	status = luaL_loadfile(L, argv[2]);
	for (i = 3; status == 0 && i < argc; i++)
		lua_pushstring(L, argv[i]);
	if (status == 0)
		status = lua_pcall(L, argc - 3, 0, 0);
	if (status != 0)
		fprintf(stderr, "sigchld: %s\n", lua_tostring(L, -1));
	lua_close(L);
	return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
