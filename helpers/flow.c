#include "flow.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	EVENTS = 64,            /* taken from the kernel at a time */
	SHARE = 1024 * 1024,    /* bytes of one way before others get their turn */
	STEPS = 64,             /* and calls */
	STORE_SIZE = 64 * 1024, /* of a buffer */
	PIPE_SIZE = 256 * 1024, /* of a pipe */
	SPARES_MOST = 16,
	LARGE_MOST = 16, /* pipes: a user has so much for all of them (pipe(7)) */
};

/* Where the bytes of a way wait: a pipe, or memory. */
struct flow_store {
	struct flow_store *next; /* in the pool */
	int pipe[2];             /* -1: memory */
	size_t held;
	size_t start; /* memory: of what is held */
	size_t size;
	unsigned char bytes[];
};

/* ---- watches ------------------------------------------------------------------------------- */

int watch_set(struct flow_set *set, struct watch *watch, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	if (epoll_ctl(set->epoll, EPOLL_CTL_MOD, fd, &event) == 0)
		return 0;
	if (errno != ENOENT)
		return -1;
	return epoll_ctl(set->epoll, EPOLL_CTL_ADD, fd, &event);
}

void watch_close(struct flow_set *set, int fd)
{
	epoll_ctl(set->epoll, EPOLL_CTL_DEL, fd, NULL);
	close(fd);
}

void watch_retire(struct flow_set *set, struct watch *watch)
{
	watch->ready = NULL;
	watch->next = set->retired;
	set->retired = watch;
}

static void tell_retired(struct flow_set *set)
{
	while (set->retired != NULL) {
		struct watch *watch = set->retired;

		set->retired = watch->next;
		watch->retired(watch);
	}
}

/* ---- stores ---------------------------------------------------------------------------------- */

static struct flow_store *new_pipe(struct flow_set *set)
{
	struct flow_store *store = calloc(1, sizeof *store);

	if (store == NULL)
		return NULL;
	if (pipe2(store->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(store);
		return NULL;
	}
	/* Where this is refused, no matter. */
	if (++set->pipe_count <= LARGE_MOST)
		fcntl(store->pipe[1], F_SETPIPE_SZ, PIPE_SIZE);
	return store;
}

static struct flow_store *new_memory(size_t size)
{
	struct flow_store *store = malloc(sizeof *store + size);

	if (store == NULL)
		return NULL;
	memset(store, 0, sizeof *store);
	store->pipe[0] = store->pipe[1] = -1;
	store->size = size;
	return store;
}

static void discard(struct flow_set *set, struct flow_store *store)
{
	if (store->pipe[0] >= 0) {
		set->pipe_count--;
		close(store->pipe[0]);
		close(store->pipe[1]);
	}
	free(store);
}

static struct flow_store *borrow(struct flow_set *set, bool memory)
{
	struct flow_store *store = memory ? NULL : set->spare;

	if (store != NULL) {
		set->spare = store->next;
		set->spare_count--;
		store->next = NULL;
		return store;
	}
	store = memory || set->copying ? NULL : new_pipe(set);
	return store != NULL ? store : new_memory(STORE_SIZE);
}

/* Only pipes that work are worth keeping: memory may be had for want of descriptors only. */
static void give_back(struct flow_set *set, struct flow_way *way)
{
	struct flow_store *store = way->store;

	way->store = NULL;
	if (store == NULL)
		return;
	if (store->held > 0 || store->pipe[0] < 0 || set->copying || set->spare_count == SPARES_MOST) {
		discard(set, store);
		return;
	}
	store->next = set->spare;
	set->spare = store;
	set->spare_count++;
}

/* Both return what was moved; 0 at the end of file; -1 with errno, EAGAIN where it would wait. */

static ssize_t fill(struct flow_store *store, int fd)
{
	ssize_t length;

	if (store->pipe[1] >= 0) {
		length = splice(fd, NULL, store->pipe[1], NULL, SHARE, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	} else if (store->held > 0) {
		errno = EAGAIN; /* first out, then in: it is never moved about */
		return -1;
	} else {
		store->start = 0;
		length = recv(fd, store->bytes, store->size, MSG_DONTWAIT);
	}
	if (length > 0)
		store->held += (size_t)length;
	return length;
}

static ssize_t empty(struct flow_store *store, int fd)
{
	ssize_t length;

	if (store->pipe[0] >= 0)
		length =
			splice(store->pipe[0], NULL, fd, NULL, store->held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	else
		length = send(fd, store->bytes + store->start, store->held, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (length > 0) {
		store->held -= (size_t)length;
		store->start += (size_t)length;
	}
	return length;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void tell_over(struct watch *watch)
{
	struct flow *flow = ((struct flow_side *)watch)->flow;

	flow->over(flow, flow->errnum);
}

/* As a reset, so that what was cut off is not taken for whole. */
static void make_reset(int fd)
{
	const struct linger none = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

static void end(struct flow *flow)
{
	int number;

	flow->dead = true;
	for (number = 0; number < 2; number++) {
		struct flow_side *side = &flow->sides[number];

		give_back(flow->set, &flow->ways[number]);
		if (flow->reset)
			make_reset(side->fd);
		else
			/* Closing alone is a reset where something was not read, here on this side. */
			shutdown(side->fd, SHUT_WR);
		watch_close(flow->set, side->fd);
		side->fd = -1;
	}
	/* In `busy` it will be looked at once more. */
	if (!flow->queued)
		watch_retire(flow->set, &flow->sides[0].watch);
}

void flow_end(struct flow *flow, int errnum)
{
	if (flow->dead)
		return;
	flow->errnum = errnum;
	flow->reset = errnum != 0;
	end(flow);
}

/* ---- moving -------------------------------------------------------------------------------------- */

static void queue(struct flow *flow)
{
	struct flow_set *set = flow->set;

	if (flow->queued)
		return;
	flow->queued = true;
	flow->next = NULL;
	*set->busy_end = flow;
	set->busy_end = &flow->next;
}

static bool would_wait(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK;
}

/* Nothing goes this way any more. */
static void close_way(struct flow *flow, int number)
{
	give_back(flow->set, &flow->ways[number]);
	flow->ways[number].ended = flow->ways[number].shut = true;
}

/*
 * The destination takes nothing more.  What it had sent before is still delivered: a server
 * may answer, and close, before it has read all that a client sends.
 */
static void refused(struct flow *flow, int number)
{
	if (flow->errnum == 0)
		flow->errnum = errno;
	close_way(flow, number);
	flow->sides[!number].readable = true; /* to the end, which is there */
	queue(flow);
}

/* The source broke off: its last word is still delivered, and it hears nothing any more. */
static void broke_off(struct flow *flow, int number)
{
	if (flow->errnum == 0)
		flow->errnum = errno;
	flow->reset = true;
	flow->ways[number].ended = true;
	close_way(flow, !number);
}

static bool is_refusal_of_splice(void)
{
	return errno == EINVAL || errno == ENOSYS || errno == EPERM;
}

/* An urgent byte (tcp(7)) ends a splice as the end of the stream does; recv(2) passes it by. */
static bool is_urgent(int fd)
{
	char byte;

	return recv(fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) != 0;
}

/* Empty, and not what the next bytes are to wait in: a pushed one is as small as what it held. */
static bool is_spent(const struct flow_way *way)
{
	const struct flow_store *store = way->store;

	return store->held == 0 && (store->pipe[0] >= 0 ? way->urgent : store->size < STORE_SIZE);
}

/* Takes from the source. Returns what it got; 0 for nothing. */
static size_t take(struct flow *flow, int number)
{
	struct flow_way *way = &flow->ways[number];
	struct flow_side *from = &flow->sides[number];
	ssize_t length;

	if (way->ended || !from->readable)
		return 0;
	if (way->store != NULL && is_spent(way))
		give_back(flow->set, way);
	if (way->urgent && way->store != NULL && way->store->pipe[0] >= 0)
		return 0; /* what is before the urgent byte goes first */
	if (way->store == NULL && (way->store = borrow(flow->set, way->urgent)) == NULL) {
		flow_end(flow, ENOMEM);
		return 0;
	}
	length = fill(way->store, from->fd);
	if (length > 0)
		return (size_t)length;
	if (length == 0 && way->store->pipe[0] >= 0 && is_urgent(from->fd)) {
		way->urgent = true;
		if (way->store->held == 0)
			queue(flow);
	} else if (length == 0) {
		way->ended = true;
	} else if (errno == EINTR) {
		queue(flow);
	} else if (would_wait()) {
		/* With something in the pipe it may be the pipe that is full. */
		if (way->store->held == 0)
			from->readable = false;
	} else if (is_refusal_of_splice() && way->store->held == 0 && way->store->pipe[0] >= 0) {
		flow->set->copying = true;
		give_back(flow->set, way);
		queue(flow);
	} else {
		broke_off(flow, number);
	}
	return 0;
}

/* Gives to the destination. Returns what it took; 0 for nothing. */
static size_t give(struct flow *flow, int number)
{
	struct flow_way *way = &flow->ways[number];
	struct flow_side *to = &flow->sides[!number];
	ssize_t length;

	if (way->store == NULL || way->store->held == 0 || !to->writable)
		return 0;
	length = empty(way->store, to->fd);
	if (length > 0) {
		way->bytes += (uint64_t)length;
		return (size_t)length;
	}
	if (length == 0 || errno == EINTR)
		queue(flow);
	else if (would_wait())
		to->writable = false;
	else
		refused(flow, number);
	return 0;
}

static void move(struct flow *flow, int number)
{
	struct flow_way *way = &flow->ways[number];
	size_t share = SHARE, moved, taken;
	int steps;

	for (steps = 0;; steps++) {
		if (steps == STEPS || share == 0) {
			queue(flow);
			return;
		}
		taken = take(flow, number);
		if (flow->dead)
			return;
		moved = give(flow, number);
		if (taken == 0 && moved == 0)
			break;
		share -= moved < share ? moved : share;
	}
	if (way->store != NULL && way->store->held > 0)
		return;
	give_back(flow->set, way);
	if (way->ended && !way->shut) {
		way->shut = true;
		if (!flow->reset)
			shutdown(flow->sides[!number].fd, SHUT_WR);
	}
}

static void pump(struct flow *flow)
{
	int number;

	for (number = 0; number < 2 && !flow->dead; number++)
		move(flow, number);
	if (!flow->dead && flow->ways[0].shut && flow->ways[1].shut)
		end(flow);
}

static void side_ready(struct watch *watch, uint32_t events)
{
	struct flow_side *side = (struct flow_side *)watch;

	if (side->flow->dead)
		return;
	if (events & EPOLLPRI)
		side->flow->ways[side - side->flow->sides].urgent = true;
	/* After an error or a hang-up the calls tell what it was, and never wait. */
	if (events & ~(uint32_t)EPOLLOUT)
		side->readable = true;
	if (events & ~(uint32_t)(EPOLLIN | EPOLLPRI | EPOLLRDHUP))
		side->writable = true;
	queue(side->flow);
}

/* ---- flows ------------------------------------------------------------------------------------------ */

static void prepare_side(struct flow *flow, int number, int fd)
{
	struct flow_side *side = &flow->sides[number];
	const int yes = 1;

	memset(side, 0, sizeof *side);
	side->watch.ready = side_ready;
	side->watch.retired = tell_over;
	side->flow = flow;
	side->fd = fd;
	/* We hold nothing back, nor must the kernel; fails on what is not TCP. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
	setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &yes, sizeof yes);
}

int flow_begin(struct flow_set *set, struct flow *flow, int first, int second)
{
	const uint32_t events = EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET;

	memset(flow->ways, 0, sizeof flow->ways);
	flow->set = set;
	flow->errnum = 0;
	flow->dead = flow->queued = flow->reset = false;
	flow->next = NULL;
	prepare_side(flow, 0, first);
	prepare_side(flow, 1, second);
	/* Edges: what is there already is reported first (epoll(7)). */
	if (watch_set(set, &flow->sides[0].watch, first, events) < 0 ||
	    watch_set(set, &flow->sides[1].watch, second, events) < 0) {
		int errnum = errno;

		flow->dead = true;
		watch_close(set, first);
		watch_close(set, second);
		errno = errnum;
		return -1;
	}
	return 0;
}

int flow_push(struct flow *flow, int from, const void *bytes, size_t length)
{
	struct flow_store *store;

	if (length == 0)
		return 0;
	store = new_memory(length);
	if (store == NULL)
		return -1;
	memcpy(store->bytes, bytes, length);
	store->held = length;
	flow->ways[from].store = store;
	return 0;
}

/* ---- sets --------------------------------------------------------------------------------------------- */

int flow_set_open(struct flow_set *set)
{
	memset(set, 0, sizeof *set);
	set->busy_end = &set->busy;
	set->epoll = epoll_create1(EPOLL_CLOEXEC);
	return set->epoll < 0 ? -1 : 0;
}

/* Those that were queued until now; who queues itself meanwhile waits for the next turn. */
static void run_busy(struct flow_set *set)
{
	struct flow *flow = set->busy;

	set->busy = NULL;
	set->busy_end = &set->busy;
	while (flow != NULL) {
		struct flow *next = flow->next;

		flow->queued = false;
		if (flow->dead)
			watch_retire(set, &flow->sides[0].watch);
		else
			pump(flow);
		flow = next;
	}
}

void flow_set_close(struct flow_set *set)
{
	while (flow_set_busy(set)) {
		run_busy(set);
		tell_retired(set);
	}
	while (set->spare != NULL) {
		struct flow_store *store = set->spare;

		set->spare = store->next;
		discard(set, store);
	}
	set->spare_count = 0;
	if (set->epoll >= 0)
		close(set->epoll);
	set->epoll = -1;
}

bool flow_set_busy(const struct flow_set *set)
{
	return set->busy != NULL || set->retired != NULL;
}

bool flow_set_turn(struct flow_set *set, int timeout)
{
	bool busy = flow_set_busy(set);
	struct epoll_event events[EVENTS];
	int number, count = epoll_wait(set->epoll, events, EVENTS, busy ? 0 : timeout);

	for (number = 0; number < count; number++) {
		struct watch *watch = events[number].data.ptr;

		if (watch->ready != NULL)
			watch->ready(watch, events[number].events);
	}
	run_busy(set);
	tell_retired(set);
	return busy || count > 0;
}
