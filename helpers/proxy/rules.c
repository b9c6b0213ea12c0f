#include "rules.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "address_class.h"

static const struct host_pattern *find(const struct host_pattern *patterns, size_t count,
                                       const struct host *host, uint16_t port)
{
	for (size_t i = 0; i < count; i++)
		if (host_pattern_matches(&patterns[i], host, port))
			return &patterns[i];
	return NULL;
}

static const struct host_pattern *find_deny(const struct rules *rules, const struct host *host,
                                            uint16_t port)
{
	return find(rules->deny, rules->deny_count, host, port);
}

static bool is_allowed(const struct rules *rules, const struct host *host, uint16_t port)
{
	return find(rules->allow, rules->allow_count, host, port) != NULL;
}

bool rules_allow_host(const struct rules *rules, const struct host *host, uint16_t port,
                      char reason[REASON_SIZE])
{
	const struct host_pattern *deny = find_deny(rules, host, port);
	char text[PATTERN_TEXT_SIZE];

	if (deny != NULL) {
		host_pattern_format(deny, text);
		snprintf(reason, REASON_SIZE, "denied by '%s'", text);
		return false;
	}
	if (is_allowed(rules, host, port))
		return true;
	snprintf(reason, REASON_SIZE, "not in the allow list");
	return false;
}

/*
 * An interface's own address, as a public one often is with IPv6: behind it are the services
 * of the loopback that listen on every address.  To itself the kernel goes from the same address.
 */
static bool is_of_this_machine(const struct host_address *address, uint16_t port)
{
	struct sockaddr_storage storage;
	struct host_address source;
	socklen_t length = address_to_socket(address, port, &storage);
	int fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool same = false;

	if (fd < 0)
		return true; /* not known: then it is taken for one */
	/* Nothing is sent: this looks for a route only. */
	if (connect(fd, (struct sockaddr *)&storage, length) == 0) {
		length = sizeof storage;
		same = getsockname(fd, (struct sockaddr *)&storage, &length) == 0 &&
		       address_from_socket((struct sockaddr *)&storage, &source) &&
		       memcmp(&source, address, sizeof source) == 0;
	}
	close(fd);
	return same;
}

bool rules_allow_address(const struct rules *rules, const struct host_address *address,
                         uint16_t port, char reason[REASON_SIZE])
{
	const struct host_pattern *deny;
	const char *class;
	char text[PATTERN_TEXT_SIZE];
	struct host host;

	host_set_address(&host, address);
	deny = find_deny(rules, &host, port);
	if (deny != NULL) {
		host_pattern_format(deny, text);
		snprintf(reason, REASON_SIZE, "resolves to %s, denied by '%s'", host.text, text);
		return false;
	}
	if (is_allowed(rules, &host, port))
		return true;
	class = address_class(address);
	if (class != NULL) {
		snprintf(reason, REASON_SIZE, "resolves to the %s address %s", class, host.text);
		return false;
	}
	if (is_of_this_machine(address, port)) {
		snprintf(reason, REASON_SIZE, "resolves to this machine's own address %s", host.text);
		return false;
	}
	return true;
}
