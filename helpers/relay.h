/*
 * From listeners in the sandbox to proxies outside: every connection that comes is connected
 * to the proxy of its listener, and their bytes flow both ways.  All in the caller's thread:
 * nothing here waits.
 */
#ifndef EXECSANDBOX_RELAY_H
#define EXECSANDBOX_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "flow.h"
#include "request.h"

struct relay_gate {
	struct watch watch;
	struct relay *relay;
	const struct request_proxy *proxy;
	int listener; /* -1: closed */
};

struct relay {
	struct flow_set set;
	struct relay_gate gates[PROXIES_MOST];
	unsigned gate_count;
	struct relay_connection *connections;
	unsigned connection_count;
	unsigned connections_most;
	uint64_t resume_at; /* when to accept again; UINT64_MAX: it does */
	bool open;
};

/*
 * Starts with no listeners, and raises this process's limit on descriptors as far as it goes.
 * Returns 0, or -1 with errno.
 */
int relay_open(struct relay *relay);

/*
 * Serves LISTENER, which is RELAY's from now on, with connections to PROXY, which must stay
 * valid.  Returns 0, or -1 with errno.
 */
int relay_add(struct relay *relay, int listener, const struct request_proxy *proxy);

/* Readable when relay_turn has something to do; -1 where RELAY is not open. */
int relay_descriptor(const struct relay *relay);

/* When relay_turn is due whatever its descriptor says, by clock_now; UINT64_MAX: never. */
uint64_t relay_due(const struct relay *relay);

/* Does what there is to do. Harmless where it is not open. */
void relay_turn(struct relay *relay);

/*
 * The sandbox is gone: moves what it had sent before as far as that goes without waiting,
 * and closes all.
 */
void relay_finish(struct relay *relay);

/* Closes all, at once. Idempotent; harmless where it is not open. */
void relay_close(struct relay *relay);

#endif
