/*
 * Hosts and ports as policies name them, and the hosts that are asked for: one canonical form
 * for both, so that what is compared is what is meant and not how it is spelled.
 *
 * The core checks patterns with it, the filtering proxy decides with it.  Nothing here
 * allocates or looks anything up.
 */
#ifndef EXECSANDBOX_HOST_PATTERN_H
#define EXECSANDBOX_HOST_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An address; IPv4 is kept mapped into IPv6 (::ffff:a.b.c.d). */
struct host_address {
	unsigned char bytes[16];
};

enum {
	HOST_TEXT_SIZE = 256,
	PATTERN_TEXT_SIZE = HOST_TEXT_SIZE + 16, /* with `*.`, brackets and a port */
};

struct host {
	bool is_address;
	struct host_address address;
	char text[HOST_TEXT_SIZE]; /* canonical; an address without brackets */
};

/*
 * Reads the LENGTH bytes at TEXT: a name, an IPv4 address in any spelling that inet_aton(3)
 * takes, or an IPv6 address with or without brackets.  Names are folded to lower case, one
 * trailing dot is dropped.  An IPv6 address that only wraps an IPv4 one (mapped or
 * compatible) is that one.  Returns NULL, or what is wrong, as the end of "… is refused: ".
 */
const char *host_parse(const char *text, size_t length, struct host *host);

/* As host_parse for `host:port` or, where DEFAULT_PORT is not 0, `host`; IPv6 in brackets. */
const char *host_parse_port(const char *text, size_t length, uint16_t default_port,
                            struct host *host, uint16_t *port);

/* Addresses as numbers in host order, and as bytes; see host_parse for what wraps IPv4. */
void host_address_set_v4(struct host_address *address, uint32_t value);
void host_address_set_v6(struct host_address *address, const unsigned char bytes[16]);

/* HOST for ADDRESS. */
void host_set_address(struct host *host, const struct host_address *address);

bool host_address_is_v4(const struct host_address *address);

enum pattern_kind {
	PATTERN_HOST,      /* this name or address */
	PATTERN_SUBDOMAIN, /* every name below this one, at any depth, itself left out */
	PATTERN_NAME,      /* every name, no address */
};

struct host_pattern {
	enum pattern_kind kind;
	struct host host; /* not of PATTERN_NAME */
	uint16_t port;    /* 0: every port */
};

/* Reads `host`, `*.name` or `*`, each with or without `:port`. Returns as host_parse. */
const char *host_pattern_parse(const char *text, struct host_pattern *pattern);

/* The canonical spelling, which host_pattern_parse takes for the same. */
void host_pattern_format(const struct host_pattern *pattern, char out[PATTERN_TEXT_SIZE]);

bool host_pattern_matches(const struct host_pattern *pattern, const struct host *host,
                          uint16_t port);

#endif
