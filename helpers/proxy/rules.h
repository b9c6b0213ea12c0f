/* What the policy's lists say of a host, and of the addresses that its name stands for. */
#ifndef EXECSANDBOX_PROXY_RULES_H
#define EXECSANDBOX_PROXY_RULES_H

#include "host_pattern.h"

struct rules {
	const struct host_pattern *allow;
	const struct host_pattern *deny;
	size_t allow_count;
	size_t deny_count;
};

enum { REASON_SIZE = 640 };

/*
 * Whether HOST may be asked for at PORT: a deny wins, then an allow is needed.  A wildcard is
 * for names only.  Where it may not, REASON says why, as the end of "… is refused: ".
 */
bool rules_allow_host(const struct rules *rules, const struct host *host, uint16_t port,
                      char reason[REASON_SIZE]);

/*
 * Whether an allowed name may stand for ADDRESS.  Addresses that are not public, and those of
 * this machine, must be in the allow list themselves.
 */
bool rules_allow_address(const struct rules *rules, const struct host_address *address,
                         uint16_t port, char reason[REASON_SIZE]);

#endif
