/* The state of a supervisor's one run, which its files share. */
#ifndef EXECSANDBOX_SUPERVISOR_STATE_H
#define EXECSANDBOX_SUPERVISOR_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cgroup.h"
#include "claim.h"
#include "clock.h"
#include "drain.h"
#include "home.h"
#include "launch.h"
#include "relay.h"
#include "request_view.h"

#define NEVER UINT64_MAX

struct supervisor {
	struct request_view view;
	struct launch launch;
	struct cgroup cgroup;
	struct claim claims[CLAIMS_MOST];
	unsigned claim_count;
	struct home home; /* private, of a direct run */

	int control; /* to the core; -1: it is gone, or heard the last word */
	int inner;   /* to the inner stage; -1: it is gone */
	int words;   /* the launcher's standard error; -1 */
	int signals;
	int sink; /* /dev/null, for writing */
	struct stream streams[2];
	struct relay relay;
	int filter_control;  /* the filtering proxy lives until it is closed; -1 */
	int filter_files[2]; /* its configuration and its report */

	pid_t launcher; /* 0: not started, or reaped */
	pid_t stage;    /* the inner stage, as we number it; 0: not known */
	pid_t command;  /* 0: not known */
	pid_t filter;   /* the filtering proxy; 0: none, or reaped */
	uint64_t launched_ns;
	uint64_t timeout_at;
	uint64_t kill_at;        /* the grace after TERM is over */
	uint64_t drain_at;       /* the command has ended: its pipes may stay open until then */
	uint64_t hard_at;        /* the inner stage does not end: kill from outside */
	uint64_t filter_kill_at; /* the filtering proxy does not end */

	bool hello;    /* the inner stage has been reached */
	bool starting; /* its child is there */
	bool started;  /* the command was executed */
	bool failed;   /* stage, errnum and text of `finished` are filled */
	bool ended;    /* the command's wait status is known */
	bool stopping; /* by timeout, cancel, or because the host is gone */
	bool end_sent; /* ORDER_END */
	bool sweeping; /* count who ends by our KILL */
	bool no_children;
	bool proxies_served; /* their listeners are in our hands */
	bool left;           /* descendants stay, FINISHED was queued already */

	bool send_started;
	bool send_finished;
	bool progress_out; /* one RECORD_PROGRESS has not been answered */
	uint64_t progress_bytes;
	bool blocked; /* the control socket is full */

	char launcher_text[4096];
	size_t launcher_length;
	struct record_finished finished;
};

/* Whether the request has FLAG; false where it could not be read. */
static inline bool supervisor_asks(const struct supervisor *self, unsigned flag)
{
	return self->view.request != NULL && request_has(&self->view, flag);
}

/* DELAY nanoseconds from now. */
static inline uint64_t supervisor_later(uint64_t delay)
{
	uint64_t now = clock_now();

	return delay > NEVER - now ? NEVER : now + delay;
}

#endif
