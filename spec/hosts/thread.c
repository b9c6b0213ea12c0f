/*
 * A host whose run is started in a thread that ends, while the main thread waits for the run:
 *
 *   thread SCRIPT [ARGUMENT...]
 *
 * SCRIPT defines the globals `start`, called in the thread, and `finish`, called in the main
 * thread after the other one has ended. One thread at a time uses the state.
 *
 * cc: -pthread
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int call(lua_State *L, const char *name)
{
	lua_getglobal(L, name);
	if (lua_pcall(L, 0, 0, 0) == 0)
		return 0;
	fprintf(stderr, "thread: %s: %s\n", name, lua_tostring(L, -1));
	return -1;
}

static void *start(void *state)
{
	return call(state, "start") < 0 ? state : NULL;
}

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();
	pthread_t thread;
	void *failed = NULL;
	int i, status;

	if (L == NULL || argc < 2)
		return 2;
	luaL_openlibs(L);
	status = luaL_loadfile(L, argv[1]);
	for (i = 2; status == 0 && i < argc; i++)
		lua_pushstring(L, argv[i]);
	if (status == 0)
		status = lua_pcall(L, argc - 2, 0, 0);
	if (status != 0) {
		fprintf(stderr, "thread: %s\n", lua_tostring(L, -1));
		return EXIT_FAILURE;
	}
	if (pthread_create(&thread, NULL, start, L) != 0 || pthread_join(thread, &failed) != 0)
		return EXIT_FAILURE;
	status = failed != NULL ? -1 : call(L, "finish");
	lua_close(L);
	return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
