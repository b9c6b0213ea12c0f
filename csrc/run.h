/*
 * A run as the host sees it: one helper process, one control socket.  Everything here
 * is non-blocking but run_end and the waits that say so.
 */
#ifndef EXECSANDBOX_RUN_H
#define EXECSANDBOX_RUN_H

#include <stdbool.h>
#include <sys/types.h>

#include "compat.h"
#include "network.h"
#include "ready.h"
#include "request.h"
#include "stream.h"

enum run_state {
	RUN_IDLE,     /* nothing was started */
	RUN_RUNNING,  /* the helper owns a command, or is about to */
	RUN_ORPHANED, /* the helper was killed: what it had started is on its way out */
	RUN_FINISHED, /* the helper has reported and ended */
	RUN_LOST,     /* the helper was killed, and nothing is left */
};

struct run {
	enum run_state state;
	int control;            /* -1: closed */
	struct ready ready;     /* what there is to wait for */
	uint64_t interval;      /* nanoseconds between ticks; 0: none */
	int request;            /* prepared, until launch: the request; -1: none */
	int input;              /* prepared, until launch: what the command reads; -1: nothing */
	int writer;             /* of the pipe to the command's standard input; -1: none, or closed */
	struct network network; /* of a filtering proxy */
	bool awaited;           /* somebody sleeps until there is room in it: go on telling */
	const char *backend;    /* its name; static */
	char *program;          /* path of the helper; owned */
	bool leave;       /* descendants may outlive the command, and the helper stays with them */
	pid_t owner;      /* the process that launched it, not one that was forked since */
	pid_t helper;     /* 0: none, or reaped */
	pid_t command;    /* 0: not yet known */
	bool closed;      /* the host ended the run itself */
	bool interrupted; /* the caller gave up: a cancelled run reports "interrupted" */
	bool reported;    /* `finished` is filled */
	int64_t launched; /* when, by now_milliseconds */
	int64_t orphaned; /* likewise: when the helper was found to be gone */
	struct record_finished finished;
	struct stream *streams[2]; /* references; the second is NULL when merged */
	char *home;    /* private, of a direct run, to remove if the helper is lost; owned; or NULL */
	char **claims; /* placeholders to look after if the helper is lost; owned, NULL-terminated */
};

/* Creates the metatable; once per state. */
void run_register(lua_State *L);

/* Pushes a new run that owns nothing yet. */
struct run *run_push(lua_State *L);

/*
 * core.block(runs, seconds) waits until one of RUNS has something to poll, at most SECONDS
 * (nil: for ever), or until a signal handler ran: Lua's own handler then raises in the
 * caller, as soon as Lua code runs again.  core.now() gives seconds on a clock that is never
 * set.
 */
int run_block(lua_State *L);
int run_now(lua_State *L);

/* Ends what RUN still has and waits for it (the helper needs milliseconds); idempotent. */
void run_end(struct run *run);

#endif
