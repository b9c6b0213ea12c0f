/* What all connections share. */
#ifndef EXECSANDBOX_PROXY_PROXY_H
#define EXECSANDBOX_PROXY_PROXY_H

#include "config.h"
#include "filter_wire.h"
#include "flow.h"
#include "report.h"
#include "resolver.h"

struct connection;

enum {
	CONNECTIONS_MOST = 1024,
	SCRATCH_SIZE = 64 * 1024,
};

struct listener {
	struct watch watch; /* first */
	struct proxy *proxy;
	int fd;
};

struct proxy {
	struct flow_set set;
	struct config config;
	struct report *report;
	struct resolver *resolver;
	struct watch control;
	struct listener listeners[FILTER_LISTENERS_MOST];
	unsigned listener_count;
	struct connection *connections;
	unsigned connection_count;
	unsigned connections_most; /* as descriptors allow */
	bool deaf;                 /* no connection is accepted for now */
	unsigned char scratch[SCRATCH_SIZE];
};

#endif
