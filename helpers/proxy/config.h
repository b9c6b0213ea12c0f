/* What the core tells the proxy to do. */
#ifndef EXECSANDBOX_PROXY_CONFIG_H
#define EXECSANDBOX_PROXY_CONFIG_H

#include "rules.h"

struct config {
	const char *nameservers; /* "": the host's */
	struct rules rules;
};

/* Reads the configuration behind FD. Returns 0, or -1 where it is not what it should be. */
int config_read(int fd, struct config *config);

#endif
