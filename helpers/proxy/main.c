/*
 * execsandbox-proxy: the proxy that a command with network "proxy_only" and lists of hosts talks
 * to.  It runs outside the sandbox, started by the supervisor for one run (filter_wire.h), and
 * is one thread with one loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "confine.h"
#include "connection.h"
#include "proxy.h"

enum {
	TICK_MS = 500,      /* how exact time limits are */
	ACCEPTS = 64,       /* before others get their turn */
	OTHER_FDS = 64,     /* listeners, name servers, spare pipes */
	FDS_PER_CLIENT = 3, /* its two sockets, and half of a pipe: without pipes flows copy */
	FDS_WANTED = 8 * 1024,
};

/* ---- listening ------------------------------------------------------------------------------------ */

static void set_listening(struct proxy *proxy, bool listening)
{
	proxy->deaf = !listening;
	for (unsigned i = 0; i < proxy->listener_count; i++)
		watch_set(&proxy->set, &proxy->listeners[i].watch, proxy->listeners[i].fd,
		          listening ? EPOLLIN : 0);
}

static void listener_ready(struct watch *watch, uint32_t events)
{
	struct listener *listener = (struct listener *)watch;
	struct proxy *proxy = listener->proxy;

	(void)events;
	for (int i = 0; i < ACCEPTS && !proxy->deaf; i++) {
		int client = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (client < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
				set_listening(proxy, false);
			return;
		}
		connection_begin(proxy, client);
		if (proxy->connection_count >= proxy->connections_most)
			set_listening(proxy, false);
	}
}

static void add_listener(struct proxy *proxy, int fd)
{
	struct listener *listener;

	if (proxy->listener_count == FILTER_LISTENERS_MOST || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
		close(fd);
		return;
	}
	listener = &proxy->listeners[proxy->listener_count++];
	listener->watch.ready = listener_ready;
	listener->proxy = proxy;
	listener->fd = fd;
	if (watch_set(&proxy->set, &listener->watch, fd, EPOLLIN) != 0)
		_exit(EXIT_FAILURE);
}

/* ---- the supervisor --------------------------------------------------------------------------------- */

static void count_all(struct proxy *proxy)
{
	for (struct connection *c = proxy->connections; c != NULL; c = c->next)
		connection_count(c);
}

static void take_listeners(struct proxy *proxy, struct msghdr *message)
{
	struct cmsghdr *part = CMSG_FIRSTHDR(message);

	for (; part != NULL; part = CMSG_NXTHDR(message, part)) {
		size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
			add_listener(proxy, fd);
		}
	}
}

/* Its end of file is the end of all: what is open is closed with the process. */
static void control_ready(struct watch *watch, uint32_t events)
{
	struct proxy *proxy = (struct proxy *)(void *)((char *)watch - offsetof(struct proxy, control));
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FILTER_LISTENERS_MOST * sizeof(int))];
	} control;
	char bytes[16];
	struct iovec part = { bytes, sizeof bytes };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
	};
	ssize_t length = recvmsg(FILTER_CONTROL, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	(void)events;
	if (length > 0) {
		take_listeners(proxy, &message);
	} else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
		count_all(proxy);
		_exit(EXIT_SUCCESS);
	}
}

/* ---- the loop ---------------------------------------------------------------------------------------- */

static void tick(struct proxy *proxy, uint64_t now)
{
	struct connection *next;

	/* Who is ended here is released in a turn only: the list stays. */
	for (struct connection *c = proxy->connections; c != NULL; c = next) {
		next = c->next;
		connection_tick(c, now);
	}
	if (proxy->deaf && proxy->connection_count < proxy->connections_most)
		set_listening(proxy, true);
}

static int time_to_wait(struct proxy *proxy)
{
	int resolver = resolver_timeout(proxy->resolver);
	int own = proxy->connections != NULL || proxy->deaf ? TICK_MS : -1;

	if (resolver < 0 || (own >= 0 && own < resolver))
		return own;
	return resolver;
}

static void loop(struct proxy *proxy)
{
	uint64_t ticked = 0;

	for (;;) {
		uint64_t now;

		flow_set_turn(&proxy->set, time_to_wait(proxy));
		now = clock_now();
		if (resolver_timeout(proxy->resolver) == 0)
			resolver_turn(proxy->resolver);
		count_all(proxy);
		if (now - ticked >= (uint64_t)TICK_MS * 1000000) {
			tick(proxy, now);
			ticked = now;
		}
	}
}

/* ---- beginning ------------------------------------------------------------------------------------- */

/* As many descriptors as may be had: each connection needs some. */
static unsigned count_connections(void)
{
	struct rlimit limit;
	rlim_t most;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 64;
	if (limit.rlim_cur < FDS_WANTED) {
		limit.rlim_cur = limit.rlim_max < FDS_WANTED ? limit.rlim_max : FDS_WANTED;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	most = limit.rlim_cur > OTHER_FDS ? (limit.rlim_cur - OTHER_FDS) / FDS_PER_CLIENT : 0;
	if (most < 8)
		return 8;
	return most > CONNECTIONS_MOST ? CONNECTIONS_MOST : (unsigned)most;
}

static bool begin(struct proxy *proxy)
{
	if (config_read(FILTER_CONFIG, &proxy->config) != 0)
		return false;
	proxy->report = report_open(FILTER_REPORT);
	if (proxy->report == NULL || flow_set_open(&proxy->set) != 0)
		return false;
	close(FILTER_CONFIG);
	close(FILTER_REPORT);
	proxy->resolver = resolver_open(&proxy->set, proxy->config.nameservers);
	proxy->connections_most = count_connections();
	proxy->control.ready = control_ready;
	return proxy->resolver != NULL &&
	       watch_set(&proxy->set, &proxy->control, FILTER_CONTROL, EPOLLIN) == 0;
}

int main(int argc, char **argv)
{
	struct proxy *proxy;

	if (argc != 2 || strcmp(argv[1], "serve") != 0) {
		fprintf(stderr, "execsandbox-proxy is started by execsandbox itself\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	proxy = calloc(1, sizeof *proxy);
	if (proxy == NULL || !begin(proxy))
		_exit(EXIT_FAILURE);
	confine();
	loop(proxy);
}
