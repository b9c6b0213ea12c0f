#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture.h"
#include "descriptor.h"
#include "failure_lua.h"
#include "input.h"
#include "network.h"
#include "plan.h"
#include "policy_lua.h"
#include "proxies.h"
#include "request_build.h"
#include "run.h"

#define LAUNCH "execsandbox.launch"

enum { POLICY_ARGUMENT = 1, REQUEST_ARGUMENT = 2 };

/* What is needed until a run is prepared: a userdata, so that an error leaks nothing. */
struct launch {
	struct plan plan;
	struct arena arena; /* strings and lists of the request */
	struct plan_context context;
	struct words argv;
	struct words environment;
	struct proxies proxies;
};

static int collect(lua_State *L)
{
	struct launch *launch = lua_touserdata(L, 1);

	plan_release(&launch->plan);
	arena_release(&launch->arena);
	return 0;
}

static struct launch *launch_push(lua_State *L)
{
	struct launch *launch = compat_newuserdata(L, sizeof *launch);

	memset(launch, 0, sizeof *launch);
	luaL_getmetatable(L, LAUNCH);
	lua_setmetatable(L, -2);
	return launch;
}

/* ---- reading the request ------------------------------------------------------ */

static bool flag(lua_State *L, const char *name)
{
	bool value;

	lua_getfield(L, REQUEST_ARGUMENT, name);
	value = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return value;
}

/* A copy in the arena of the string at the top of the stack, which is popped. */
static const char *take_string(lua_State *L, struct launch *launch, const char *name)
{
	size_t length;
	const char *text = lua_tolstring(L, -1, &length);
	const char *copy;

	if (text == NULL || strlen(text) != length)
		luaL_error(L, "bad field '%s' of a request (a string without NUL expected)", name);
	copy = arena_copy(&launch->arena, text, length);
	if (copy == NULL)
		raise_memory(L);
	lua_pop(L, 1);
	return copy;
}

static const char *string(lua_State *L, struct launch *launch, const char *name, bool required)
{
	lua_getfield(L, REQUEST_ARGUMENT, name);
	if (lua_isnil(L, -1) && !required) {
		lua_pop(L, 1);
		return NULL;
	}
	return take_string(L, launch, name);
}

static void list(lua_State *L, struct launch *launch, const char *name, struct words *out)
{
	size_t i, count;

	out->arena = &launch->arena;
	lua_getfield(L, REQUEST_ARGUMENT, name);
	luaL_checktype(L, -1, LUA_TTABLE);
	count = lua_rawlen(L, -1);
	for (i = 1; i <= count; i++) {
		lua_rawgeti(L, -1, (int)i);
		words_add(out, take_string(L, launch, name));
	}
	lua_pop(L, 1);
	if (out->exhausted)
		raise_memory(L);
}

/* Seconds as nanoseconds: nil is 0; far beyond a lifetime, the number saturates. */
static uint64_t nanoseconds(lua_State *L, const char *name)
{
	lua_Number seconds;

	lua_getfield(L, REQUEST_ARGUMENT, name);
	seconds = lua_tonumber(L, -1);
	lua_pop(L, 1);
	if (!(seconds > 0))
		return 0;
	if (seconds >= 1e9)
		return (uint64_t)1e18;
	return (uint64_t)ceil(seconds * 1e9);
}

/* As nanoseconds, but no time at all is not the 0 that means "none". */
static uint64_t timeout(lua_State *L)
{
	bool given;

	lua_getfield(L, REQUEST_ARGUMENT, "timeout");
	given = !lua_isnil(L, -1);
	lua_pop(L, 1);
	return given && nanoseconds(L, "timeout") == 0 ? 1 : nanoseconds(L, "timeout");
}

static void read_context(lua_State *L, struct launch *launch)
{
	struct plan_context *context = &launch->context;
	struct words launchers = { 0 };

	context->resolve.cwd = string(L, launch, "cwd", true);
	context->resolve.home = string(L, launch, "home", false);
	context->resolve.tmpdir = string(L, launch, "tmpdir", false);
	context->resolve.search_path = string(L, launch, "search_path", false);
	context->resolve.private_home = string(L, launch, "private_home", false);
	context->helper = string(L, launch, "helper", true);
	context->helper_named = flag(L, "helper_named");
	context->launcher_named = flag(L, "launcher_named");
	context->filter_program = string(L, launch, "filter_program", false);
	context->proc_mountable = flag(L, "proc_mountable");
	context->own_view = flag(L, "own_view");
	list(L, launch, "launchers", &launchers);
	context->launchers = launchers.items;
	context->launcher_count = launchers.count;
	lua_getfield(L, REQUEST_ARGUMENT, "proxies");
	proxies_read(L, &launch->arena, &launch->proxies);
	context->proxy_count = launch->proxies.count;
}

/* luaL_error, in a form that says that it does not return. */
_Noreturn static void raise_error(lua_State *L, const char *message)
{
	luaL_error(L, "%s", message);
	__builtin_unreachable();
}

/* Pushes a launch with the plan for the arguments; 0 or -1 with FAILURE. */
static int make_plan(lua_State *L, struct launch **out, struct failure *failure)
{
	const struct policy *policy = policy_check(L, POLICY_ARGUMENT);
	struct launch *launch;

	luaL_checktype(L, REQUEST_ARGUMENT, LUA_TTABLE);
	lua_settop(L, REQUEST_ARGUMENT);
	launch = launch_push(L);
	read_context(L, launch);
	list(L, launch, "argv", &launch->argv);
	list(L, launch, "environment", &launch->environment);
	if (launch->argv.count == 0)
		raise_error(L, "bad field 'argv' of a request (empty)");
	*out = launch;
	return plan_make(policy, &launch->context, &launch->plan, failure);
}

/* ---- preparing a run ------------------------------------------------------------ */

static int open_input(lua_State *L, struct run *run, struct failure *failure)
{
	size_t length;
	const char *text;

	lua_getfield(L, REQUEST_ARGUMENT, "input");
	text = lua_tolstring(L, -1, &length);
	if (text != NULL) {
		run->input = input_from_string(text, length, failure);
	} else if (flag(L, "input_inherit")) {
		run->input = input_inherited(failure);
	} else if (flag(L, "input_pipe")) {
		run->input = input_pipe(&run->writer, failure);
	} else {
		lua_getfield(L, REQUEST_ARGUMENT, "input_file");
		text = lua_tostring(L, -1);
		if (text == NULL)
			return 0; /* nothing to read */
		run->input = input_from_file(text, failure);
	}
	return run->input < 0 ? -1 : 0;
}

static int open_stream(struct run *run, int number, const char *directory, bool retain,
                       struct failure *failure)
{
	static const char *const names[] = { "stdout", "stderr" };
	struct stream *stream = stream_new();

	if (stream == NULL)
		return failure_memory(failure);
	run->streams[number] = stream;
	if (retain)
		return stream_open_retained(stream, directory, names[number], failure);
	return stream_open_anonymous(stream, directory, failure);
}

static int open_streams(lua_State *L, struct launch *launch, struct run *run,
                        struct failure *failure)
{
	const char *directory = string(L, launch, "capture_directory", true);
	bool retain = flag(L, "retain");

	if (open_stream(run, 0, directory, retain, failure) < 0)
		return -1;
	return flag(L, "merge") ? 0 : open_stream(run, 1, directory, retain, failure);
}

/* The paths of the placeholders, for the case that the helper is killed. */
static int remember_claims(struct run *run, const struct mounts *mounts, struct failure *failure)
{
	size_t i, count = 0;

	for (i = 0; i < mounts->count; i++)
		count += mounts->items[i].claim != NULL;
	if (count == 0)
		return 0;
	run->claims = calloc(count + 1, sizeof *run->claims);
	if (run->claims == NULL)
		return failure_memory(failure);
	for (i = 0, count = 0; i < mounts->count; i++) {
		if (mounts->items[i].claim == NULL)
			continue;
		run->claims[count] = strdup(mounts->items[i].claim);
		if (run->claims[count++] == NULL)
			return failure_memory(failure);
	}
	return 0;
}

static uint32_t request_flags(lua_State *L, const struct launch *launch)
{
	uint32_t flags = launch->plan.flags;

	if (flag(L, "merge"))
		flags |= REQUEST_MERGE;
	if (flag(L, "leave"))
		flags |= REQUEST_LEAVE;
	if (flag(L, "progress"))
		flags |= REQUEST_PROGRESS;
	return flags;
}

static int build_request(lua_State *L, struct launch *launch, struct run *run,
                         struct failure *failure)
{
	const struct plan *plan = &launch->plan;
	struct request_input input = { 0 };
	size_t i;

	input.fixed.flags = request_flags(L, launch);
	input.fixed.timeout_ns = timeout(L);
	input.fixed.kill_grace_ns = nanoseconds(L, "kill_grace");
	input.fixed.drain_grace_ns = nanoseconds(L, "drain_grace");
	lua_getfield(L, REQUEST_ARGUMENT, "capture_byte_limit");
	input.fixed.capture_limit = (uint64_t)lua_tonumber(L, -1);
	lua_pop(L, 1);
	for (i = 0; i < REQUEST_LIMITS; i++)
		input.fixed.limits[i] = plan->limits[i];
	if (!plan->direct) {
		input.fixed.cwd_device = (uint64_t)plan->resolved.cwd_device;
		input.fixed.cwd_inode = (uint64_t)plan->resolved.cwd_inode;
		input.fixed.empty_files = plan->bwrap.empty_files;
		input.launcher = &plan->bwrap.launcher;
		input.arguments = &plan->bwrap.arguments;
		input.inner_path = plan->bwrap.inner_path;
		input.mounts = &plan->mounts;
	}
	if (plan->flags & REQUEST_PROXY) {
		input.proxies = launch->proxies.items;
		input.proxy_count = launch->proxies.count;
		input.filter_program = launch->context.filter_program;
	}
	input.argv = &launch->argv;
	input.environment = &launch->environment;
	input.cwd = plan->cwd;
	input.home = plan->home;
	run->leave = (input.fixed.flags & REQUEST_LEAVE) != 0;
	run->interval = nanoseconds(L, "interval");
	run->backend = plan->backend;
	run->program = strdup(launch->context.helper);
	if (run->program == NULL)
		return failure_memory(failure);
	if (plan->home != NULL && (run->home = strdup(plan->home)) == NULL)
		return failure_memory(failure);
	run->request = request_build(&input, failure);
	if (run->request < 0)
		return -1;
	run->request = descriptor_lift(run->request);
	if (run->request < 0)
		return failure_execution(failure, "request", errno, "cannot keep the request: %s",
		                         strerror(errno));
	return 0;
}

/* What the filtering proxy is told, and tells. */
static int open_network(lua_State *L, struct launch *launch, struct run *run,
                        struct failure *failure)
{
	const char *nameservers = string(L, launch, "nameservers", false);

	if (launch->context.filter_program == NULL)
		return 0;
	return network_open(&run->network, policy_check(L, POLICY_ARGUMENT),
	                    nameservers == NULL ? "" : nameservers, failure);
}

int launch_prepare(lua_State *L)
{
	struct failure failure;
	struct launch *launch;
	struct stream **captures[2];
	struct run *run;
	int i;

	if (make_plan(L, &launch, &failure) < 0)
		return push_failure(L, &failure);
	run = run_push(L);
	captures[0] = capture_push(L);
	captures[1] = capture_push(L);
	if (open_streams(L, launch, run, &failure) < 0 || open_input(L, run, &failure) < 0 ||
	    remember_claims(run, &launch->plan.mounts, &failure) < 0 ||
	    open_network(L, launch, run, &failure) < 0 || build_request(L, launch, run, &failure) < 0) {
		for (i = 0; i < 2; i++)
			stream_remove(run->streams[i]);
		return push_failure(L, &failure);
	}
	for (i = 0; i < 2; i++)
		if (run->streams[i] != NULL)
			*captures[i] = stream_hold(run->streams[i]);
	lua_settop(L, REQUEST_ARGUMENT + 4); /* policy, request, launch, run, captures */
	if (run->streams[1] == NULL) {
		lua_pop(L, 1);
		lua_pushnil(L);
	}
	/* What the plan and the request's strings take is not needed any more. */
	plan_release(&launch->plan);
	arena_release(&launch->arena);
	return 3;
}

/* ---- plans ------------------------------------------------------------------------ */

static void push_words(lua_State *L, const struct words *words)
{
	size_t i;

	lua_newtable(L);
	for (i = 0; i < words->count; i++) {
		lua_pushstring(L, words->items[i]);
		lua_rawseti(L, -2, (int)i + 1);
	}
}

static void set_string(lua_State *L, const char *name, const char *value)
{
	if (value == NULL)
		return;
	lua_pushstring(L, value);
	lua_setfield(L, -2, name);
}

static void set_flag(lua_State *L, const char *name, bool value)
{
	lua_pushboolean(L, value);
	lua_setfield(L, -2, name);
}

static void push_mounts(lua_State *L, const struct mounts *mounts)
{
	size_t i;

	lua_newtable(L);
	for (i = 0; i < mounts->count; i++) {
		const struct mount *mount = &mounts->items[i];

		lua_newtable(L);
		set_string(L, "kind", mount_kind_name(mount->kind));
		set_string(L, "path", mount->path);
		set_string(L, "source", mount->source);
		if (mount->claim != NULL)
			set_flag(L, "placeholder", true);
		lua_rawseti(L, -2, (int)i + 1);
	}
}

static void push_notes(lua_State *L, const struct resolved *resolved)
{
	size_t i;

	lua_newtable(L);
	for (i = 0; i < resolved->note_count; i++) {
		lua_newtable(L);
		set_string(L, "path", resolved->notes[i].path);
		set_string(L, "text", resolved->notes[i].text);
		lua_rawseti(L, -2, (int)i + 1);
	}
}

/* The placeholders, or the private home, that are made for the run and removed after it. */
static void push_cleanup(lua_State *L, const struct plan *plan)
{
	const struct mounts *mounts = &plan->mounts;
	size_t i;
	int count = 0;

	lua_newtable(L);
	for (i = 0; i < mounts->count; i++) {
		if (mounts->items[i].claim == NULL)
			continue;
		lua_pushstring(L, mounts->items[i].claim);
		lua_rawseti(L, -2, ++count);
	}
	if (plan->home != NULL) {
		lua_pushstring(L, plan->home);
		lua_rawseti(L, -2, ++count);
	}
}

int launch_plan(lua_State *L)
{
	struct failure failure;
	struct launch *launch;
	const struct plan *plan;

	if (make_plan(L, &launch, &failure) < 0)
		return push_failure(L, &failure);
	plan = &launch->plan;
	lua_newtable(L);
	set_string(L, "backend", plan->backend);
	set_string(L, "working_directory", plan->cwd);
	if (!plan->direct)
		set_string(L, "mounted_by", (plan->flags & REQUEST_VIEW) ? "inner" : "bwrap");
	set_flag(L, "system_call_filter", (plan->flags & REQUEST_FILTER) != 0);
	set_flag(L, "process_namespace", (plan->flags & REQUEST_PID_NAMESPACE) != 0);
	set_flag(L, "unix_sockets", (plan->flags & REQUEST_UNIX_SOCKETS) != 0);
	if (!plan->direct)
		set_string(L, "program", plan->bwrap.launcher.items[0]);
	push_words(L, &plan->bwrap.arguments);
	lua_setfield(L, -2, "arguments");
	push_mounts(L, &plan->mounts);
	lua_setfield(L, -2, "mounts");
	push_notes(L, &plan->resolved);
	lua_setfield(L, -2, "notes");
	push_cleanup(L, plan);
	lua_setfield(L, -2, "cleanup_paths");
	return 1;
}

void launch_register(lua_State *L)
{
	luaL_newmetatable(L, LAUNCH);
	lua_pushcfunction(L, collect);
	lua_setfield(L, -2, "__gc");
	lua_pushboolean(L, 0);
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 1);
}
