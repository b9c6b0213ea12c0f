/*
 * A Lua interpreter as a host of its own:
 *
 *   interpreter [-m MIB] [-e CHUNK] [SCRIPT [ARGUMENT...]]
 *
 * `make check-sanitize` builds it with the sanitizers the core is built with. An interpreter that
 * was built without them would need their runtime preloaded, and every command it starts would
 * inherit that.  -m keeps so many MiB resident, in small pages, for measuring what a large host
 * pays.  Without SCRIPT or -e the script is read from standard input.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Makes MIB mebibytes resident, or exits. */
static void add_ballast(const char *mib)
{
	size_t size = strtoul(mib, NULL, 10) * 1024 * 1024;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED) {
		perror("interpreter: -m");
		exit(1);
	}
	/* A fork copies one page table entry a page: huge pages would hide its price. */
	madvise(memory, size, MADV_NOHUGEPAGE);
	memset(memory, 1, size);
}

/* Sets the global `arg`, in which SCRIPT is number 0. */
static void set_arguments(lua_State *L, int argc, char **argv, int script)
{
	int i;

	lua_newtable(L);
	for (i = 0; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i - script);
	}
	lua_setglobal(L, "arg");
}

static int with_traceback(lua_State *L)
{
	lua_getglobal(L, "debug");
	lua_getfield(L, -1, "traceback");
	if (lua_tostring(L, 1) == NULL)
		return 1;
	lua_pushvalue(L, 1);
	lua_pushinteger(L, 2);
	lua_call(L, 2, 1);
	return 1;
}

/* Calls the chunk below COUNT arguments; LOADED is what loading it returned. */
static int call(lua_State *L, int loaded, int count)
{
	int base = lua_gettop(L) - count;
	int status = loaded;

	if (status == 0) {
		lua_pushcfunction(L, with_traceback);
		lua_insert(L, base);
		status = lua_pcall(L, count, 0, base);
	}
	if (status != 0)
		fprintf(stderr, "interpreter: %s\n", lua_tostring(L, -1));
	lua_settop(L, 0);
	return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run_script(lua_State *L, int argc, char **argv, int script)
{
	const char *name = script < argc && strcmp(argv[script], "-") != 0 ? argv[script] : NULL;
	int loaded = luaL_loadfile(L, name);
	int i;

	if (loaded != 0)
		return call(L, loaded, 0);
	luaL_checkstack(L, argc + 8, "arguments");
	for (i = script + 1; i < argc; i++)
		lua_pushstring(L, argv[i]);
	return call(L, loaded, script < argc ? argc - script - 1 : 0);
}

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();
	int status = EXIT_SUCCESS;
	int chunks = 0;
	int at = 1;
	int i;

	if (L == NULL)
		return EXIT_FAILURE;
	luaL_openlibs(L);
	for (i = 1; i + 1 < argc && (strcmp(argv[i], "-e") == 0 || strcmp(argv[i], "-m") == 0); i += 2)
		at = i + 2;
	set_arguments(L, argc, argv, at);
	for (i = 1; i < at && status == EXIT_SUCCESS; i += 2) {
		if (strcmp(argv[i], "-m") == 0) {
			add_ballast(argv[i + 1]);
		} else {
			status = call(L, luaL_loadstring(L, argv[i + 1]), 0);
			chunks++;
		}
	}
	if (status == EXIT_SUCCESS && (at < argc || chunks == 0))
		status = run_script(L, argc, argv, at);
	lua_close(L);
	return status;
}
