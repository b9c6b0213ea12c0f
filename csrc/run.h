/*
 * A run as the host sees it: one helper process, one control socket.  Everything here
 * is non-blocking but run_end and the waits that say so.
 */
#ifndef EXECSANDBOX_RUN_H
#define EXECSANDBOX_RUN_H

#include <stdbool.h>
#include <sys/types.h>

#include "compat.h"
#include "request.h"
#include "stream.h"

enum run_state {
	RUN_IDLE,     /* nothing was started */
	RUN_RUNNING,  /* the helper owns a command, or is about to */
	RUN_FINISHED, /* the helper has reported and ended */
	RUN_LOST,     /* the helper is gone without a report: it was killed, or told to go */
};

struct run {
	enum run_state state;
	int control;         /* -1: closed */
	int request;         /* prepared, until launch: the request; -1: none */
	int input;           /* prepared, until launch: what the command reads; -1: nothing */
	const char *backend; /* its name; static */
	char *program;       /* path of the helper; owned */
	bool leave;          /* descendants may outlive the command, and the helper stays with them */
	pid_t helper;        /* 0: none, or reaped */
	pid_t command;       /* 0: not yet known */
	bool closed;         /* the host ended the run itself and did not wait for a report */
	bool interrupted;    /* the caller gave up: a cancelled run reports "interrupted" */
	bool reported;       /* `finished` is filled */
	int64_t launched;    /* when, by now_milliseconds */
	struct record_finished finished;
	struct stream *streams[2]; /* references; the second is NULL when merged */
	char **claims; /* placeholders to look after if the helper is lost; owned, NULL-terminated */
};

/* Creates the metatable; once per state. */
void run_register(lua_State *L);

/* Pushes a new run that owns nothing yet. */
struct run *run_push(lua_State *L);

/* core.block(runs, seconds) and core.now(), as Lua functions. */
int run_block(lua_State *L);
int run_now(lua_State *L);

/* Ends what RUN still has and waits for it (the helper needs milliseconds); idempotent. */
void run_end(struct run *run);

#endif
