/*
 * A host that runs out of memory, at every moment at which it can:
 *
 *   allocations once|twice|onwards[=NUMBER] fresh|kept SCRIPT [ARGUMENT...]
 *
 * What needs memory is done over and over, with allocation 1, 2, 3, … failing, until a time that
 * needs fewer (=NUMBER: only with that one, for whoever looks for a mistake). Lua's allocations and those of C libraries count alike. With `once`
 * only that one fails, with `twice` also Lua's second try after a collection (from 5.2 on), with
 * `onwards` all that follow.  With `fresh`, everything is done in a new state:
 * SCRIPT is loaded and called, and returns a text. With `kept` it is called once, with memory, and
 * returns a function that returns a text, and one that is called after each attempt: with
 * memory, after a collection, and with whether it succeeded.
 *
 * An attempt must return the very text that it returns with memory, or say that there was not
 * enough, and must leave no process, no descriptor and (under the sanitizers) no memory behind.
 * SCRIPT also has list(directory), listen(path), which makes a socket there, and launches(), the
 * number of helpers started. Prints how often and how.
 *
 * cc: -fno-builtin
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- memory that fails -------------------------------------------------------------------------- */

static struct {
	bool attempt;  /* one is being made */
	bool counting; /* and this is a part of it that counts */
	bool onwards;
	bool twice;
	bool collecting; /* Lua's second try is to come */
	unsigned long count;
	unsigned long fails; /* number of the one that fails; 0: none */
} memory;

static bool fails(void)
{
	if (!memory.counting)
		return false;
	memory.count++;
	if (memory.fails == 0 || memory.count < memory.fails ||
	    (memory.count > memory.fails && !memory.onwards))
		return false;
	errno = ENOMEM;
	return true;
}

/*
 * The functions of the C library, for everything in this process (malloc(3): "Replacing malloc" in
 * glibc's manual). The sanitizer's own stay behind them, so that it knows every block.
 */
#ifdef __SANITIZE_ADDRESS__
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *block, size_t size);

void *malloc(size_t size)
{
	return fails() ? NULL : REAL(malloc)(size);
}

void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : REAL(calloc)(count, size);
}

void *realloc(void *block, size_t size)
{
	return size > 0 && fails() ? NULL : REAL(realloc)(block, size);
}

void *reallocarray(void *block, size_t count, size_t size)
{
	if (size != 0 && count > SIZE_MAX / size) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(block, count * size);
}

/* The sanitizer's own would take the memory from itself. */
char *strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = malloc(size);

	return copy == NULL ? NULL : memcpy(copy, text, size);
}

/* A lua_Alloc, which must not fail to make a block smaller. */
static void *allocate(void *data, void *block, size_t old_size, size_t new_size)
{
	(void)data;
	if (new_size == 0) {
		free(block);
		return NULL;
	}
	if (block != NULL && new_size <= old_size)
		return REAL(realloc)(block, new_size);
	if (memory.counting && memory.collecting) {
		memory.collecting = false;
		return NULL;
	}
	if (fails()) {
		memory.collecting = memory.twice && LUA_VERSION_NUM >= 502;
		return NULL;
	}
	return REAL(realloc)(block, new_size);
}

/* ---- what scripts can ask --------------------------------------------------------------------- */

static volatile int launches_so_far;

/* Called by a child of vfork(2), whose memory is ours. */
int execve(const char *path, char *const argv[], char *const environment[])
{
	int result;

	launches_so_far++;
	result = (int)syscall(SYS_execve, path, argv, environment);
	launches_so_far--; /* only a failure returns */
	return result;
}

static int launches(lua_State *L)
{
	lua_pushinteger(L, launches_so_far);
	return 1;
}

static int list(lua_State *L)
{
	DIR *directory = opendir(luaL_checkstring(L, 1));
	struct dirent *entry;
	int count = 0;

	if (directory == NULL)
		return luaL_error(L, "%s: %s", lua_tostring(L, 1), strerror(errno));
	lua_newtable(L);
	while ((entry = readdir(directory)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		lua_pushstring(L, entry->d_name);
		lua_rawseti(L, -2, ++count);
	}
	closedir(directory);
	return 1;
}

static int make_socket(lua_State *L)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s", luaL_checkstring(L, 1));
	if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return luaL_error(L, "%s: %s", address.sun_path, strerror(errno));
	return 0;
}

/*
 * Without memory a new state crashes LuaJIT, and the io library of Lua 5.1 leaves handles that
 * close the standard streams when they are collected.
 */
#define OPENS_SAFELY (LUA_VERSION_NUM >= 502)

/* ---- attempts ----------------------------------------------------------------------------------- */

static struct {
	int argc;
	char **argv; /* of the script, itself included */
	bool fresh;
	bool refuses;   /* Lua refuses an allocator that is not its own */
	char *expected; /* the text; NULL until it is known */
	size_t expected_length;
	bool loading; /* the script; what is said then is Lua's own */
	bool right;   /* the text was the expected one */
	int work;     /* references of a kept state */
	int after;
} the;

_Noreturn static void complain(const char *what, const char *text)
{
	memory.counting = false;
	printf("allocation %lu: %s%s%s\n", memory.fails, what, *text == '\0' ? "" : ": ", text);
	fflush(stdout);
	_exit(1);
}

static int panic(lua_State *L)
{
	complain("an error that nothing catches", lua_tostring(L, -1));
}

/* Loads and calls the script, which returns COUNT values. */
static void call_script(lua_State *L, int count)
{
	int i;

	luaL_openlibs(L);
	memory.counting = memory.attempt;
	lua_register(L, "list", list);
	lua_register(L, "listen", make_socket);
	lua_register(L, "launches", launches);
	the.loading = true;
	if (luaL_loadfile(L, the.argv[0]) != 0)
		lua_error(L);
	the.loading = false;
	luaL_checkstack(L, the.argc, "arguments");
	for (i = 1; i < the.argc; i++)
		lua_pushstring(L, the.argv[i]);
	lua_call(L, the.argc - 1, count);
}

/* From the line on in which TEXT is not what was expected. */
static const char *difference(const char *text)
{
	const char *line = text, *at = text, *expected = the.expected;

	for (; *at != '\0' && *at == *expected; at++, expected++)
		if (*at == '\n')
			line = at + 1;
	return line;
}

static void take_text(const char *text, size_t length)
{
	if (text == NULL)
		complain("no text", "");
	if (the.expected == NULL) {
		memory.counting = false;
		the.expected = malloc(length + 1);
		memcpy(the.expected, text, length + 1);
		the.expected_length = length;
	}
	the.right = length == the.expected_length && memcmp(text, the.expected, length) == 0;
	if (!the.right)
		complain("it had another result", difference(text));
}

static int attempt(lua_State *L)
{
	const char *text;
	size_t length;

	if (the.fresh) {
		call_script(L, 1);
	} else {
		lua_rawgeti(L, LUA_REGISTRYINDEX, the.work);
		lua_call(L, 0, 1);
	}
	text = lua_tolstring(L, -1, &length);
	take_text(text, length);
	return 0;
}

static int prepare(lua_State *L)
{
	call_script(L, 2);
	the.after = luaL_ref(L, LUA_REGISTRYINDEX);
	the.work = luaL_ref(L, LUA_REGISTRYINDEX);
	return 0;
}

static int settle(lua_State *L)
{
	lua_gc(L, LUA_GCCOLLECT, 0);
	lua_gc(L, LUA_GCCOLLECT, 0); /* what was finalised in the first */
	lua_rawgeti(L, LUA_REGISTRYINDEX, the.after);
	lua_pushboolean(L, the.right);
	lua_call(L, 1, 0);
	return 0;
}

static int protected(lua_State *L, lua_CFunction function)
{
#if LUA_VERSION_NUM < 502
	return lua_cpcall(L, function, NULL);
#else
	lua_pushcfunction(L, function); /* takes no memory */
	return lua_pcall(L, 0, 0, 0);
#endif
}

/* The error at the top of the stack must say that memory was short. */
static void judge(lua_State *L)
{
	const char *text = lua_tostring(L, -1);

	if (text != NULL && (strcmp(text, "not enough memory") == 0 ||
	                     /* what Lua 5.2 and 5.3 make of it while they collect */
	                     strcmp(text, "error in __gc metamethod (not enough memory)") == 0))
		return;
	if (text != NULL && the.loading && strstr(text, "memory") != NULL)
		return;
	if (text == NULL && luaL_callmeta(L, -1, "__tostring")) {
		text = lua_tostring(L, -1);
		if (strstr(text, "memory") != NULL)
			return;
	}
	complain("another error", text == NULL ? "(no text)" : text);
}

static lua_State *new_state(void)
{
	lua_State *L = the.refuses ? NULL : lua_newstate(allocate, NULL);

	/* LuaJIT takes only its own allocator where it cannot use all addresses: then C alone fails. */
	if (L == NULL && memory.fails == 0)
		the.refuses = true;
	if (the.refuses)
		L = luaL_newstate();
	if (L != NULL)
		lua_atpanic(L, panic);
	return L;
}

/* ---- what is left ---------------------------------------------------------------------------------- */

static int count_descriptors(void)
{
	enum { MOST = 1024 };
	static struct pollfd all[MOST];
	int i, count = 0;

	for (i = 0; i < MOST; i++)
		all[i] = (struct pollfd){ .fd = i };
	poll(all, MOST, 0);
	for (i = 0; i < MOST; i++)
		count += !(all[i].revents & POLLNVAL);
	return count;
}

/* The library reaps its own; what they leave comes here (PR_SET_CHILD_SUBREAPER, prctl(2)). */
static void check_processes(void)
{
	const struct timespec moment = { 0, 1000000 };
	int tries;
	pid_t pid;

	for (tries = 0; (pid = waitpid(-1, NULL, WNOHANG | __WALL)) >= 0; tries++) {
		if (pid > 0)
			complain("a process was left to be reaped", "");
		if (tries == 20000) /* a busy machine takes its time */
			complain("a process is left", "");
		nanosleep(&moment, NULL);
	}
}

/* Returns how many descriptors are open; they must be so many (-1: any). */
static int check_rest(lua_State *L, int descriptors)
{
	char text[64];
	int now;

	if (L != NULL && protected(L, settle) != 0)
		complain("afterwards", lua_tostring(L, -1));
	check_processes();
	now = count_descriptors();
	snprintf(text, sizeof text, "%d instead of %d", now, descriptors);
	if (descriptors >= 0 && now != descriptors)
		complain("descriptors", text);
	return now;
}

/* ---- the sweep --------------------------------------------------------------------------------------- */

/* One attempt; whether it succeeded. */
static bool try_once(lua_State *kept)
{
	lua_State *L = kept;
	int status;

	the.right = false;
	memory.count = 0;
	memory.collecting = false;
	memory.attempt = true;
	memory.counting = !the.fresh || OPENS_SAFELY;
	if (the.fresh)
		L = new_state();
	status = L == NULL ? LUA_ERRMEM : protected(L, attempt);
	memory.attempt = memory.counting = false;
	if (L == NULL)
		return false;
	if (status != 0)
		judge(L);
	lua_settop(L, 0);
	if (the.fresh)
		lua_close(L);
	return status == 0;
}

int main(int argc, char **argv)
{
	unsigned long failed = 0;
	lua_State *kept = NULL;
	const char *only;
	int descriptors;

	if (argc < 4)
		return 2;
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	memory.twice = strncmp(argv[1], "twice", strlen("twice")) == 0;
	memory.onwards = strncmp(argv[1], "onwards", strlen("onwards")) == 0;
	only = strchr(argv[1], '=');
	the.fresh = strcmp(argv[2], "fresh") == 0;
	the.argc = argc - 3;
	the.argv = argv + 3;
	if (!the.fresh) {
		kept = new_state();
		if (kept == NULL || protected(kept, prepare) != 0)
			complain("preparing", kept == NULL ? "no state" : lua_tostring(kept, -1));
	}
	/* What is loaded once is loaded; and the result is the same every time. */
	if (!try_once(kept))
		complain("with memory", "it failed");
	descriptors = check_rest(kept, -1);
	if (!try_once(kept))
		complain("with memory", "it failed");
	check_rest(kept, descriptors);
	if (only != NULL)
		memory.fails = strtoul(only + 1, NULL, 10) - 1;
	do {
		memory.fails++;
		failed += !try_once(kept);
		check_rest(kept, descriptors);
	} while (memory.count >= memory.fails && only == NULL);
	if (kept != NULL)
		lua_close(kept);
	free(the.expected);
	printf("%lu allocations, %lu attempts failed\n", memory.fails - 1, failed);
	return EXIT_SUCCESS;
}
