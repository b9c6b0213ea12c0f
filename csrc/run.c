#include "run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../helpers/claim.h"
#include "../helpers/home.h"
#include "descriptor.h"
#include "failure_lua.h"
#include "input.h"
#include "spawn.h"

#define RUN "execsandbox.run"

enum {
	END_MILLISECONDS = 5000,  /* for an ended run to go: all of it gets SIGKILL, so this is ample */
	LOST_MILLISECONDS = 1000, /* for what a killed helper had started, likewise */
	HOME_MILLISECONDS = 4000, /* for its private home, in all */
	HOME_SLICE_NS = 20000000, /* of which so much at a time */
	HOOKED_MILLISECONDS = 50, /* between looks at a debug hook that is set */
};

struct run *run_push(lua_State *L)
{
	struct run *run = compat_newuserdata(L, sizeof *run);

	memset(run, 0, sizeof *run);
	run->control = run->request = run->input = run->writer = -1;
	run->ready = READY_NONE;
	run->owner = getpid();
	run->network = NETWORK_NONE;
	luaL_getmetatable(L, RUN);
	lua_setmetatable(L, -2);
	return run;
}

static struct run *check(lua_State *L)
{
	return luaL_checkudata(L, 1, RUN);
}

/* ---- the helper -------------------------------------------------------------- */

static uint64_t nanoseconds(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

/* What a helper that did not report has used, and all that it reaped. */
static void take_usage(struct run *run, const struct rusage *usage)
{
	run->finished.user_ns = nanoseconds(&usage->ru_utime);
	run->finished.system_ns = nanoseconds(&usage->ru_stime);
	run->finished.max_rss_bytes = (uint64_t)usage->ru_maxrss * 1024;
}

/*
 * The helper has ended, or is in the middle of it: this does not wait.  A host may reap all
 * children itself or ignore SIGCHLD: ECHILD (waitpid(2)) then means that it is done.
 */
static void reap(struct run *run)
{
	struct rusage usage = { 0 };
	pid_t result;

	if (run->helper == 0)
		return;
	do
		result = wait4(run->helper, NULL, 0, &usage);
	while (result < 0 && errno == EINTR);
	run->helper = 0;
	if (!run->reported)
		take_usage(run, &usage);
}

static int64_t now_milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void release_claims(struct run *run)
{
	size_t i;

	for (i = 0; run->claims != NULL && run->claims[i] != NULL; i++)
		free(run->claims[i]);
	free(run->claims);
	run->claims = NULL;
	free(run->home);
	run->home = NULL;
}

static bool is_over(const struct run *run)
{
	return run->state == RUN_FINISHED || run->state == RUN_LOST;
}

static void close_writer(struct run *run)
{
	if (run->writer < 0)
		return;
	ready_forget(&run->ready, run->writer);
	close(run->writer);
	run->writer = -1;
}

/*
 * The helper was killed: what it started ends by itself (the inner stage sees the end of
 * its socket, and holds the locks of the placeholders until then), but the placeholders are
 * left to us.  Innermost first.  One that stays locked is another run's, which removes it.  A
 * private home is removed a bit at a time, when nothing of the run is left.
 * Returns whether nothing is left to do.
 */
static bool recovered(struct run *run)
{
	bool patient = now_milliseconds() - run->orphaned < LOST_MILLISECONDS;
	size_t count = 0;

	if (run->command > 0 && kill(run->command, 0) == 0 && patient)
		return false;
	while (run->claims != NULL && run->claims[count] != NULL)
		count++;
	while (count > 0) {
		if (claim_release_stale(run->claims[count - 1]) == 1 && patient)
			return false;
		free(run->claims[--count]);
		run->claims[count] = NULL;
	}
	return run->home == NULL || home_recover(run->home, HOME_SLICE_NS) != 1 ||
	       now_milliseconds() - run->orphaned >= HOME_MILLISECONDS;
}

static void set_streams(struct run *run, enum stream_status ended, const struct record_stream *seen)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		struct stream *stream = run->streams[i];

		if (stream == NULL)
			continue;
		stream->stored = stream_size(stream);
		if (seen != NULL)
			stream->observed = seen[i].observed; /* else what was heard of last */
		if (stream->observed < stream->stored)
			stream->observed = stream->stored;
		if (ended == STREAM_LAUNCH_FAILED)
			stream->status = ended;
		else if ((seen != NULL && seen[i].errnum != 0) || stream_is_displaced(stream))
			stream->status = STREAM_WRITE_ERROR;
		else if (stream->observed > stream->stored)
			stream->status = STREAM_LIMIT;
		else if (ended == STREAM_COMPLETE && seen != NULL && !seen[i].closed)
			stream->status = STREAM_INTERRUPTED;
		else
			stream->status = ended;
	}
}

static enum stream_status stream_ending(const struct run *run)
{
	switch ((enum ending)run->finished.ending) {
	case ENDING_EXITED:
		return STREAM_COMPLETE;
	case ENDING_TIMEOUT:
		return STREAM_TIMEOUT;
	case ENDING_CANCELLED:
		return run->interrupted ? STREAM_INTERRUPTED : STREAM_CANCELLED;
	case ENDING_LAUNCH_FAILED:
		return STREAM_LAUNCH_FAILED;
	}
	return STREAM_INTERRUPTED;
}

static void settle(struct run *run, enum run_state state)
{
	run->state = state;
	ready_stop_ticks(&run->ready);
	set_streams(run, state == RUN_FINISHED ? stream_ending(run) : STREAM_INTERRUPTED,
	            state == RUN_FINISHED ? run->finished.streams : NULL);
	release_claims(run);
}

/*
 * The socket has ended, and with it the helper; or the run is over for the host, and the
 * helper stays with the descendants that it was asked to leave.  The socket stays open, at
 * its end: what watches it must not be left with a number that means something else.
 */
static void conclude(struct run *run)
{
	close_writer(run);
	reap(run);
	if (run->reported) {
		settle(run, RUN_FINISHED);
		return;
	}
	run->state = RUN_ORPHANED;
	run->orphaned = now_milliseconds();
	run->finished.real_ns = (uint64_t)(run->orphaned - run->launched) * 1000000u;
}

static void send_command(struct run *run, uint32_t type, int32_t value)
{
	struct command command = { type, value };

	/* A full socket means that the helper has hundreds of commands to read already. */
	if (run->control >= 0)
		send(run->control, &command, sizeof command, MSG_NOSIGNAL | MSG_DONTWAIT);
}

union record {
	uint32_t type;
	struct record_started started;
	struct record_progress progress;
	struct record_finished finished;
};

static void take_record(struct run *run, const union record *record, size_t length)
{
	size_t i;

	if (length >= sizeof record->started && record->type == RECORD_STARTED)
		run->command = record->started.pid;
	if (length >= sizeof record->progress && record->type == RECORD_PROGRESS) {
		for (i = 0; i < 2; i++)
			if (run->streams[i] != NULL)
				run->streams[i]->observed = record->progress.streams[i].observed;
		send_command(run, COMMAND_PROGRESS, 0);
	}
	if (length >= sizeof record->finished && record->type == RECORD_FINISHED) {
		run->finished = record->finished;
		run->finished.stage[sizeof run->finished.stage - 1] = '\0';
		run->finished.text[sizeof run->finished.text - 1] = '\0';
		run->reported = true;
		if (run->leave)
			conclude(run);
	}
}

static void hear(struct run *run)
{
	union record record;

	while (run->state == RUN_RUNNING) {
		ssize_t length = recv(run->control, &record, sizeof record, MSG_DONTWAIT);

		/*
		 * A helper that ends before it has read what was sent to it resets the connection,
		 * which is told once and before what it had sent itself (unix(7)).
		 */
		if (length < 0 && (errno == EINTR || errno == ECONNRESET))
			continue;
		if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (length <= 0)
			conclude(run);
		else if ((size_t)length >= sizeof record.type)
			take_record(run, &record, (size_t)length);
	}
}

/* The command has closed its standard input; or there is room again, and that is known now. */
static void watch_writer(struct run *run)
{
	struct pollfd state = { run->writer, POLLOUT, 0 };

	if (run->writer < 0 || poll(&state, 1, 0) <= 0)
		return;
	if (state.revents & ~POLLOUT)
		close_writer(run);
	else if (!run->awaited)
		ready_want_room(&run->ready, run->writer, false);
}

/* Takes what has happened; true when the run is over. Never blocks. */
static bool advance(struct run *run)
{
	hear(run);
	watch_writer(run);
	if (run->state == RUN_ORPHANED && recovered(run))
		settle(run, RUN_LOST);
	return run->state != RUN_RUNNING && run->state != RUN_ORPHANED;
}

/* ---- starting and ending --------------------------------------------------------- */

static void close_prepared(struct run *run)
{
	if (run->request >= 0)
		close(run->request);
	if (run->input >= 0)
		close(run->input);
	run->request = run->input = -1;
}

static void close_descriptors(struct run *run)
{
	close_prepared(run);
	close_writer(run);
	network_close(&run->network);
	ready_close(&run->ready);
	if (run->control >= 0)
		close(run->control);
	run->control = -1;
}

/* The pair to talk to the helper by: our end, and what there is to wait for, in RUN. */
static int open_control(struct run *run, int *theirs, struct failure *failure)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return failure_execution(failure, "helper", errno, "cannot make a socket pair: %s",
		                         strerror(errno));
	*theirs = pair[1];
	run->control = descriptor_lift(pair[0]);
	if (run->control < 0)
		return failure_execution(failure, "helper", errno, "cannot keep a socket: %s",
		                         strerror(errno));
	if (network_send(&run->network, run->control, failure) < 0)
		return -1;
	return ready_open(&run->ready, run->control, run->interval, run->writer, failure);
}

static int launch(struct run *run, struct failure *failure)
{
	struct spawn_descriptors descriptors = { -1, run->request, run->input, run->streams[0]->fd,
		                                     run->streams[1] == NULL ? -1 : run->streams[1]->fd };
	int result = open_control(run, &descriptors.control, failure);

	if (result == 0)
		result = spawn_helper(run->program, &descriptors, &run->helper, failure);
	if (descriptors.control >= 0)
		close(descriptors.control);
	close_prepared(run);
	if (result < 0) {
		close_descriptors(run);
		return -1;
	}
	run->owner = getpid();
	run->launched = now_milliseconds();
	run->state = RUN_RUNNING;
	return 0;
}

/* Until the run is over, at most MILLISECONDS; true when it is. */
static bool await_end(struct run *run, int milliseconds)
{
	int64_t deadline = now_milliseconds() + milliseconds;

	while (!advance(run)) {
		struct pollfd wait = { run->control, POLLIN, 0 };
		int64_t left = deadline - now_milliseconds();

		if (left <= 0)
			return false;
		if (run->state == RUN_ORPHANED)
			poll(NULL, 0, 1);
		else
			poll(&wait, 1, (int)left);
	}
	return true;
}

void run_end(struct run *run)
{
	if (run->state == RUN_IDLE || is_over(run))
		return;
	run->closed = true;
	send_command(run, COMMAND_END, 0);
	if (await_end(run, END_MILLISECONDS))
		return;
	/* It is stuck, or has more to read than the socket holds; the run dies with it. */
	shutdown(run->control, SHUT_WR);
	if (run->helper > 0)
		kill(run->helper, SIGKILL);
	await_end(run, END_MILLISECONDS);
}

/* ---- methods ------------------------------------------------------------------- */

/* run:poll() → whether it is over, whether the interval has passed. Never blocks. */
static int method_poll(lua_State *L)
{
	struct run *run = check(L);

	lua_pushboolean(L, advance(run));
	lua_pushboolean(L, ready_ticked(&run->ready));
	return 2;
}

/* Seconds at INDEX as a timespec; false where nil says for ever. */
static bool read_time(lua_State *L, int index, struct timespec *time)
{
	lua_Number seconds;

	if (lua_isnoneornil(L, index))
		return false;
	seconds = luaL_checknumber(L, index);
	if (!(seconds > 0))
		seconds = 0;
	if (seconds > 1e9)
		seconds = 1e9;
	time->tv_sec = (time_t)seconds;
	time->tv_nsec = (long)((seconds - (lua_Number)time->tv_sec) * 1e9);
	return true;
}

/*
 * ppoll(2) that an interrupt of the interpreter always ends.  Lua's own handler sets a debug
 * hook; where it ran just before the call, only the hook tells.  So signals are held back
 * while that is looked at, and let in by the call itself.
 */
static void wait_for(lua_State *L, struct pollfd *waits, size_t count, struct timespec *time)
{
	struct timespec soon = { 0, HOOKED_MILLISECONDS * 1000000L };
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (lua_gethook(L) != NULL &&
	    (time == NULL || time->tv_sec > 0 || time->tv_nsec > soon.tv_nsec))
		time = &soon;
	ppoll(waits, (nfds_t)count, time, &before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int run_block(lua_State *L)
{
	struct timespec time, moment = { 0, 1000000L };
	struct pollfd *waits;
	bool bounded = read_time(L, 2, &time);
	size_t i, count;

	luaL_checktype(L, 1, LUA_TTABLE);
	count = lua_rawlen(L, 1);
	waits = compat_newuserdata(L, (count + 1) * sizeof *waits);
	for (i = 0; i < count; i++) {
		const struct run *run;

		lua_rawgeti(L, 1, (int)i + 1);
		run = luaL_checkudata(L, -1, RUN);
		lua_pop(L, 1);
		if (run->state == RUN_ORPHANED) {
			wait_for(L, NULL, 0, &moment); /* nothing tells when it is over */
			return 0;
		}
		if (run->state != RUN_RUNNING)
			return 0;
		waits[i].fd = ready_descriptor(&run->ready);
		waits[i].events = POLLIN;
	}
	wait_for(L, waits, count, bounded ? &time : NULL);
	return 0;
}

int run_now(lua_State *L)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	lua_pushnumber(L, (lua_Number)now.tv_sec + (lua_Number)now.tv_nsec / 1e9);
	return 1;
}

static int method_backend(lua_State *L)
{
	lua_pushstring(L, check(L)->backend);
	return 1;
}

static int method_fd(lua_State *L)
{
	int fd = ready_descriptor(&check(L)->ready);

	if (fd < 0)
		return 0;
	lua_pushinteger(L, fd);
	return 1;
}

static int method_pid(lua_State *L)
{
	const struct run *run = check(L);

	if (run->command <= 0)
		return 0;
	lua_pushinteger(L, run->command);
	return 1;
}

static int method_signal(lua_State *L)
{
	struct run *run = check(L);
	lua_Integer number = luaL_checkinteger(L, 2);

	luaL_argcheck(L, number >= 1 && number <= 64, 2, "not a signal number");
	send_command(run, COMMAND_SIGNAL, (int32_t)number);
	return 0;
}

static int method_cancel(lua_State *L)
{
	send_command(check(L), COMMAND_CANCEL, 0);
	return 0;
}

/*
 * run:write(bytes, offset) → how many of the bytes from OFFSET on were taken, 0 where there is
 * no room now (the descriptor tells when there is); nil where nobody reads them any more
 */
static int method_write(lua_State *L)
{
	struct run *run = check(L);
	size_t length;
	const char *bytes = luaL_checklstring(L, 2, &length);
	size_t offset = (size_t)luaL_checknumber(L, 3);
	ssize_t written;

	luaL_argcheck(L, offset <= length, 3, "behind the end");
	if (run->writer < 0)
		return 0;
	written = input_write(run->writer, bytes + offset, length - offset);
	if (written < 0) {
		close_writer(run);
		return 0;
	}
	if ((size_t)written < length - offset)
		ready_want_room(&run->ready, run->writer, true);
	lua_pushinteger(L, written);
	return 1;
}

/* run:await_room(whether) */
static int method_await_room(lua_State *L)
{
	check(L)->awaited = lua_toboolean(L, 2);
	return 0;
}

static int method_close_input(lua_State *L)
{
	close_writer(check(L));
	return 0;
}

static void set_seconds(lua_State *L, const char *name, uint64_t nanoseconds)
{
	lua_pushnumber(L, (lua_Number)nanoseconds / 1e9);
	lua_setfield(L, -2, name);
}

static void set_integer(lua_State *L, const char *name, uint64_t value)
{
	lua_pushinteger(L, (lua_Integer)value);
	lua_setfield(L, -2, name);
}

static const char *status_name(const struct run *run)
{
	if (run->state == RUN_LOST)
		return run->closed || run->command > 0 ? "interrupted" : "launch-failed";
	switch ((enum ending)run->finished.ending) {
	case ENDING_EXITED:
		return "exited";
	case ENDING_TIMEOUT:
		return "timeout";
	case ENDING_CANCELLED:
		return run->interrupted ? "interrupted" : "cancelled";
	case ENDING_LAUNCH_FAILED:
		return "launch-failed";
	}
	return "interrupted";
}

/* run:record() → a table with the plain facts of a run that is over, or nil */
static int method_record(lua_State *L)
{
	const struct run *run = check(L);
	const struct record_finished *finished = &run->finished;

	if (!is_over(run))
		return 0;
	lua_newtable(L);
	lua_pushstring(L, status_name(run));
	lua_setfield(L, -2, "status");
	lua_pushboolean(L, finished->descendants_killed != 0);
	lua_setfield(L, -2, "descendants_killed");
	set_seconds(L, "real_seconds", finished->real_ns);
	set_seconds(L, "user_seconds", finished->user_ns);
	set_seconds(L, "system_seconds", finished->system_ns);
	set_integer(L, "max_rss_bytes", finished->max_rss_bytes);
	network_push(L, &run->network);
	lua_setfield(L, -2, "network");
	if (run->state == RUN_LOST) {
		lua_pushliteral(L, "helper");
		lua_setfield(L, -2, "stage");
		lua_pushliteral(L, "the helper was killed before it could report");
		lua_setfield(L, -2, "text");
		return 1;
	}
	if (finished->signal != 0)
		set_integer(L, "signal", (uint64_t)finished->signal);
	else if (finished->exit_code >= 0)
		set_integer(L, "exit_code", (uint64_t)finished->exit_code);
	if (finished->ending == ENDING_LAUNCH_FAILED) {
		set_integer(L, "errno", (uint64_t)finished->errnum);
		lua_pushstring(L, finished->stage);
		lua_setfield(L, -2, "stage");
		lua_pushstring(L, finished->text);
		lua_setfield(L, -2, "text");
	}
	return 1;
}

/* run:discard() removes the retained files of a run that is not to be launched */
static int method_discard(lua_State *L)
{
	struct run *run = check(L);

	stream_remove(run->streams[0]);
	stream_remove(run->streams[1]);
	close_descriptors(run);
	return 0;
}

/* run:close(interrupted) ends the run and waits for that */
static int method_close(lua_State *L)
{
	struct run *run = check(L);

	run->interrupted = run->interrupted || lua_toboolean(L, 2);
	run_end(run);
	return 0;
}

/* run:release() closes the descriptor of a run that is over */
static int method_release(lua_State *L)
{
	struct run *run = check(L);

	if (is_over(run))
		close_descriptors(run);
	return 0;
}

/* run:owned() → whether this process launched it, not one that forked this one */
static int method_owned(lua_State *L)
{
	lua_pushboolean(L, check(L)->owner == getpid());
	return 1;
}

static int collect(lua_State *L)
{
	struct run *run = lua_touserdata(L, 1);
	size_t i;

	/* A process that the host forked has copies of everything, and ends nothing. */
	if (run->owner == getpid()) {
		/* Never launched: nobody was handed the files (an error came between). */
		for (i = 0; run->state == RUN_IDLE && i < 2; i++)
			stream_remove(run->streams[i]);
		run_end(run);
	}
	close_descriptors(run);
	release_claims(run);
	free(run->program);
	run->program = NULL;
	for (i = 0; i < 2; i++) {
		stream_release(run->streams[i]);
		run->streams[i] = NULL;
	}
	return 0;
}

/* run:launch() → true, or nil and why not */
static int method_launch(lua_State *L)
{
	struct run *run = check(L);
	struct failure failure;

	if (run->state != RUN_IDLE || run->request < 0)
		return luaL_error(L, "this run was started before");
	if (launch(run, &failure) < 0) {
		set_streams(run, STREAM_LAUNCH_FAILED, NULL);
		return push_failure(L, &failure);
	}
	lua_pushboolean(L, 1);
	return 1;
}

static const luaL_Reg methods[] = { { "launch", method_launch },
	                                { "poll", method_poll },
	                                { "backend", method_backend },
	                                { "fd", method_fd },
	                                { "pid", method_pid },
	                                { "signal", method_signal },
	                                { "cancel", method_cancel },
	                                { "write", method_write },
	                                { "await_room", method_await_room },
	                                { "close_input", method_close_input },
	                                { "record", method_record },
	                                { "discard", method_discard },
	                                { "close", method_close },
	                                { "release", method_release },
	                                { "owned", method_owned },
	                                { NULL, NULL } };

void run_register(lua_State *L)
{
	luaL_newmetatable(L, RUN);
	lua_pushcfunction(L, collect);
	lua_setfield(L, -2, "__gc");
	lua_newtable(L);
	compat_setfuncs(L, methods);
	lua_setfield(L, -2, "__index");
	lua_pushliteral(L, RUN);
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 1);
}
