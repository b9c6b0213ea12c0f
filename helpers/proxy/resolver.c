#include "resolver.h"

#include <ares.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "address.h"

enum {
	TRY_MS = 3000, /* for the first answer; c-ares doubles it with each try */
	TRIES = 3,
};

struct resolver {
	ares_channel channel;
	struct flow_set *set;
	struct dns_socket *sockets;
	unsigned pending;
};

/* One of c-ares's sockets. */
struct dns_socket {
	struct watch watch; /* first */
	struct dns_socket *next;
	struct resolver *resolver;
	int fd;
};

struct lookup {
	struct resolver *resolver;
	resolver_answer *answer;
	void *context;
};

/* ---- sockets ---------------------------------------------------------------------------------- */

static void socket_ready(struct watch *watch, uint32_t events)
{
	struct dns_socket *socket = (struct dns_socket *)watch;
	const uint32_t broken = EPOLLERR | EPOLLHUP;

	ares_process_fd(socket->resolver->channel,
	                events & (EPOLLIN | broken) ? socket->fd : ARES_SOCKET_BAD,
	                events & (EPOLLOUT | broken) ? socket->fd : ARES_SOCKET_BAD);
}

static void socket_retired(struct watch *watch)
{
	free(watch);
}

static struct dns_socket *find_socket(struct resolver *resolver, int fd)
{
	struct dns_socket *socket = resolver->sockets;

	while (socket != NULL && socket->fd != fd)
		socket = socket->next;
	return socket;
}

static struct dns_socket *new_socket(struct resolver *resolver, int fd)
{
	struct dns_socket *socket = calloc(1, sizeof *socket);

	if (socket == NULL)
		return NULL;
	socket->watch.ready = socket_ready;
	socket->watch.retired = socket_retired;
	socket->resolver = resolver;
	socket->fd = fd;
	socket->next = resolver->sockets;
	resolver->sockets = socket;
	return socket;
}

/* c-ares closes the descriptor itself, after this. */
static void forget_socket(struct resolver *resolver, struct dns_socket *socket)
{
	struct dns_socket **link = &resolver->sockets;

	while (*link != socket)
		link = &(*link)->next;
	*link = socket->next;
	epoll_ctl(resolver->set->epoll, EPOLL_CTL_DEL, socket->fd, NULL);
	watch_retire(resolver->set, &socket->watch);
}

static void socket_changed(void *data, ares_socket_t fd, int readable, int writable)
{
	struct resolver *resolver = data;
	struct dns_socket *socket = find_socket(resolver, fd);

	if (!readable && !writable) {
		if (socket != NULL)
			forget_socket(resolver, socket);
		return;
	}
	if (socket == NULL)
		socket = new_socket(resolver, fd);
	/* Without memory its lookup runs into the time limit. */
	if (socket != NULL)
		watch_set(resolver->set, &socket->watch, fd,
		          (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u));
}

/* ---- lookups ---------------------------------------------------------------------------------- */

/* Returns NULL, or what is wrong. */
static const char *collect(const struct ares_addrinfo *info, struct addresses *addresses)
{
	addresses->count = 0;
	for (const struct ares_addrinfo_node *node = info->nodes; node != NULL; node = node->ai_next) {
		if (addresses->count == ADDRESSES_MOST)
			return "it has too many addresses";
		if (address_from_socket(node->ai_addr, &addresses->list[addresses->count]))
			addresses->count++;
	}
	return addresses->count == 0 ? "it has no address" : NULL;
}

static const char *meaning(int status)
{
	switch (status) {
	case ARES_ENOTFOUND:
		return "there is no such name";
	case ARES_ENODATA:
		return "it has no address";
	case ARES_ETIMEOUT:
		return "the name servers did not answer";
	case ARES_ECONNREFUSED:
		return "no name server can be reached";
	default:
		return ares_strerror(status);
	}
}

static void answered(void *context, int status, int timeouts, struct ares_addrinfo *info)
{
	struct lookup *lookup = context;
	struct addresses addresses = { .count = 0 };
	const char *wrong;

	(void)timeouts;
	if (status == ARES_SUCCESS) {
		wrong = collect(info, &addresses);
		ares_freeaddrinfo(info);
	} else {
		wrong = meaning(status); /* and there is no info */
	}
	lookup->resolver->pending--;
	lookup->answer(lookup->context, wrong == NULL ? &addresses : NULL, wrong);
	free(lookup);
}

void resolver_lookup(struct resolver *resolver, const char *name, resolver_answer *answer,
                     void *context)
{
	const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct lookup *lookup = malloc(sizeof *lookup);

	if (lookup == NULL) {
		answer(context, NULL, "memory is exhausted");
		return;
	}
	*lookup = (struct lookup){ resolver, answer, context };
	resolver->pending++;
	ares_getaddrinfo(resolver->channel, name, NULL, &hints, answered, lookup);
}

/* ---- the resolver --------------------------------------------------------------------------------- */

struct resolver *resolver_open(struct flow_set *set, const char *nameservers)
{
	struct resolver *resolver = calloc(1, sizeof *resolver);
	char lookups[] = "fb"; /* the hosts file, then name servers */
	struct ares_options options = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = TRY_MS,
		.tries = TRIES,
		.ndomains = 0,
		.lookups = lookups,
		.sock_state_cb = socket_changed,
		.sock_state_cb_data = resolver,
	};
	const int set_options = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
	                        ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;

	if (resolver == NULL)
		return NULL;
	resolver->set = set;
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS ||
	    ares_init_options(&resolver->channel, &options, set_options) != ARES_SUCCESS) {
		free(resolver);
		return NULL;
	}
	if (*nameservers != '\0' &&
	    ares_set_servers_ports_csv(resolver->channel, nameservers) != ARES_SUCCESS) {
		ares_destroy(resolver->channel);
		free(resolver);
		return NULL;
	}
	return resolver;
}

int resolver_timeout(struct resolver *resolver)
{
	struct timeval left;

	if (resolver->pending == 0 || ares_timeout(resolver->channel, NULL, &left) == NULL)
		return -1;
	return (int)(left.tv_sec * 1000 + (left.tv_usec + 999) / 1000);
}

void resolver_turn(struct resolver *resolver)
{
	if (resolver->pending > 0)
		ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}
