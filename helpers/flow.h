/*
 * Bytes both ways between two stream sockets, many pairs in one thread, and the event loop
 * that this needs.  Nothing here ever waits but flow_set_turn, for as long as it is told.
 *
 * The bytes go by splice(2) through pipes of a pool, one for each way, held only while bytes
 * wait in it; where pipes or splice(2) are refused they go through a bounded buffer.  A side
 * that does not take its bytes is not read for: no more than one pipe or buffer of a
 * way is ever held.
 *
 * A program that uses this must ignore or block SIGPIPE: splice(2) has no MSG_NOSIGNAL.
 */
#ifndef EXECSANDBOX_FLOW_H
#define EXECSANDBOX_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the loop ------------------------------------------------------------------------------- */

/*
 * What a descriptor's events are for: the first member, by custom, of what its owner keeps
 * about it.  Its address is the epoll_event's data.ptr.
 */
struct watch {
	void (*ready)(struct watch *watch, uint32_t events); /* NULL: events are ignored */
	void (*retired)(struct watch *watch);                /* for watch_retire */
	struct watch *next;
};

struct flow_set {
	int epoll;
	struct watch *retired;    /* to be told at the end of the turn */
	struct flow *busy;        /* had more to move than one turn's share */
	struct flow **busy_end;   /* where the next one is put */
	struct flow_store *spare; /* empty, for the next who needs one */
	unsigned spare_count;
	unsigned pipe_count; /* in use and spare */
	bool copying;        /* no splice(2) here */
};

/*
 * Makes SET, with an epoll descriptor of its own, which is readable when a turn has something
 * to do.  Returns 0, or -1 with errno.
 */
int flow_set_open(struct flow_set *set);

/* Gives up what SET holds. Its flows must have ended. */
void flow_set_close(struct flow_set *set);

/* Whether the next turn has something to do already: then do not wait for `epoll`. */
bool flow_set_busy(const struct flow_set *set);

/*
 * Waits at most TIMEOUT milliseconds (-1: for ever; 0: not at all; also not where it is
 * busy), calls `ready` of all whose events came, moves the bytes of the flows, each of them
 * its share, and tells who retired.  Returns whether there was anything to do.
 */
bool flow_set_turn(struct flow_set *set, int timeout);

/* Watches FD for EVENTS (epoll_ctl(2)), or changes them. Returns 0, or -1 with errno. */
int watch_set(struct flow_set *set, struct watch *watch, int fd, uint32_t events);

/* Watches FD no more, and closes it. (Closing alone is not enough where a child has a copy.) */
void watch_close(struct flow_set *set, int fd);

/*
 * Nothing is heard of WATCH any more, and at the end of this turn, when no event in hand can
 * mean it any more, its `retired` is called, which may free it.
 */
void watch_retire(struct flow_set *set, struct watch *watch);

/* ---- flows ------------------------------------------------------------------------------------- */

struct flow_side {
	struct watch watch;
	struct flow *flow;
	int fd; /* -1: closed */
	bool readable;
	bool writable;
};

/* One way, from side N to the other. */
struct flow_way {
	struct flow_store *store; /* NULL: nothing is held */
	uint64_t bytes;           /* delivered */
	bool urgent;              /* no splice(2) this way: urgent bytes were seen */
	bool ended;               /* nothing more will come from the source */
	bool shut;                /* and the destination has been told */
};

struct flow {
	struct flow_side sides[2];
	struct flow_way ways[2]; /* ways[0]: from sides[0] to sides[1] */
	struct flow_set *set;
	/*
	 * All is over, both sockets are closed, ERRNUM tells why (0: both ends closed in order),
	 * ways[].bytes what was delivered.  Called at the end of a turn: it may free the flow.
	 */
	void (*over)(struct flow *flow, int errnum);
	void *context; /* the caller's */
	int errnum;
	bool dead;
	bool reset;  /* one side broke off: the other is to know */
	bool queued; /* in `busy` */
	struct flow *next;
};

/*
 * Begins a flow between the connected, nonblocking stream sockets FIRST and SECOND, which it
 * owns from now on; they may have been watched by the caller in SET (the watch is replaced).
 * `over` and `context` are set by the caller before.  End of file on one side ends the other
 * side's input (shutdown(2)), after what is pending; when both have ended, the flow is
 * over.  An error on one side ends both: what the failed side has sent until then is
 * still delivered, and a reset is passed on as a reset.  Returns 0; or -1 with errno, and the
 * sockets are closed, and `over` is not called.
 */
int flow_begin(struct flow_set *set, struct flow *flow, int first, int second);

/*
 * Bytes that the caller has read itself from side FROM (0 or 1) go first.  To be called right
 * after flow_begin, at most once for each side.  Returns 0, or -1 where there is no memory.
 */
int flow_push(struct flow *flow, int from, const void *bytes, size_t length);

/*
 * Ends FLOW now, with ERRNUM: both sockets are closed (reset, where it is not 0; else whoever
 * reads there comes to an end of file), and `over` is called at the end of the turn.  Nothing
 * where it has ended already.
 */
void flow_end(struct flow *flow, int errnum);

#endif
