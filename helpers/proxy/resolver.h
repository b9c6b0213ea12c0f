/* Names to addresses, by c-ares in the proxy's one loop: hosts file, then name servers. */
#ifndef EXECSANDBOX_PROXY_RESOLVER_H
#define EXECSANDBOX_PROXY_RESOLVER_H

#include "flow.h"
#include "host_pattern.h"

struct resolver;

enum { ADDRESSES_MOST = 32 };

struct addresses {
	struct host_address list[ADDRESSES_MOST];
	unsigned count;
};

/*
 * The answer, called once for each lookup, maybe before resolver_lookup returns.  WRONG is NULL,
 * or says why there are no addresses; a name that has none, and one that has more than
 * ADDRESSES_MOST, is wrong too.
 */
typedef void resolver_answer(void *context, const struct addresses *addresses, const char *wrong);

/*
 * Names are looked up as they are written, with no search domain: what was allowed is what is
 * asked for.  NAMESERVERS as ares_set_servers_ports_csv(3) takes them, "" for the host's.
 * NULL where it cannot be made.
 */
struct resolver *resolver_open(struct flow_set *set, const char *nameservers);

void resolver_lookup(struct resolver *resolver, const char *name, resolver_answer *answer,
                     void *context);

/* The milliseconds until resolver_turn has something to do; -1: nothing is under way. */
int resolver_timeout(struct resolver *resolver);

/* Lets servers that are silent be asked again, or given up. */
void resolver_turn(struct resolver *resolver);

#endif
