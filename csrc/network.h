/*
 * The core's part in a run's filtering proxy (filter_wire.h): its configuration, made before
 * the launch, and its report, read when the run is over.
 */
#ifndef EXECSANDBOX_NETWORK_H
#define EXECSANDBOX_NETWORK_H

#include "compat.h"
#include "failure.h"
#include "policy.h"

struct network {
	int config; /* memory files; -1: none, or given away */
	int report;
};

#define NETWORK_NONE ((struct network){ -1, -1 })

/* Makes both for POLICY's lists. NAMESERVERS: "" for the host's. Returns 0, or -1 with FAILURE. */
int network_open(struct network *network, const struct policy *policy, const char *nameservers,
                 struct failure *failure);

/* Sends both ahead to the helper, where there are any. Returns 0, or -1 with FAILURE. */
int network_send(struct network *network, int control, struct failure *failure);

/*
 * Pushes { allowed = { { host, port, count, bytes }, … }, denied = likewise }; nil where there
 * is no report.
 */
void network_push(lua_State *L, const struct network *network);

/* Idempotent. */
void network_close(struct network *network);

#endif
