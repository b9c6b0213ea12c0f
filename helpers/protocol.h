/*
 * What the supervisor and the inner stage say to each other, over the SOCK_SEQPACKET
 * pair INNER_CONTROL.  Both are the same program; the command never gets this socket.
 *
 * The supervisor's end has SO_PASSCRED, so that every message comes with the sender's
 * process id as the supervisor's own namespace numbers it (unix(7)).
 */
#ifndef EXECSANDBOX_PROTOCOL_H
#define EXECSANDBOX_PROTOCOL_H

#include <stdint.h>

#include "request.h"

enum message_type {
	MESSAGE_HELLO = 1, /* the inner stage runs: the launcher has done its work */
	MESSAGE_STARTING,  /* sent by the command's own process just before its exec */
	MESSAGE_STARTED,   /* that exec succeeded */
	MESSAGE_FAILED,    /* stage, errnum, text: nothing was started */
	MESSAGE_EXITED,    /* value is the command's wait status; alone: nothing else is left
	                      and the inner stage is gone with this message */
	MESSAGE_LISTENERS, /* SCM_RIGHTS: value sockets that listen for the request's proxies, in
	                      their order; text[i] is 1 where that of proxy i is among them */
	MESSAGE_ENDED,     /* value processes besides the command were killed; all are gone */
};

struct message {
	uint32_t type; /* enum message_type */
	int32_t value;
	int32_t errnum;
	uint32_t alone;
	uint64_t at_ns; /* CLOCK_MONOTONIC, when the command was reaped */
	uint64_t user_ns;
	uint64_t system_ns;
	uint64_t max_rss_bytes;
	char stage[32];
	char text[512];
};

enum order_type {
	ORDER_SETTINGS = 1, /* waits in the socket when the inner stage starts */
	ORDER_GO,           /* the cgroup is in place; once more: the listeners are */
	ORDER_TERMINATE,    /* TERM to everything but the inner stage */
	ORDER_SIGNAL,       /* value to the command's process group */
	ORDER_END,          /* KILL everything, report, exit */
};

_Static_assert(sizeof((struct message *)0)->text >= PROXIES_MOST, "one byte for each");

struct order {
	uint32_t type; /* enum order_type */
	int32_t value;
	/* ORDER_SETTINGS: what the host's own processes have, for the command */
	uint32_t umask;
	uint32_t pad;
	uint64_t files_soft; /* RLIMIT_NOFILE */
	uint64_t files_hard;
};

#endif
