/*
 * What the core, the supervisor and the filtering proxy (`execsandbox-proxy serve`) say to
 * each other.
 *
 * The core writes the configuration and keeps the report; both are memory files, which go
 * to the proxy by way of the supervisor.  The supervisor sends the proxy its listening
 * sockets, and holds the other end of FILTER_CONTROL for as long as the proxy may live.
 *
 * All three are built together and run on one machine: native byte order, and a version
 * that must match exactly.
 */
#ifndef EXECSANDBOX_FILTER_WIRE_H
#define EXECSANDBOX_FILTER_WIRE_H

#include <stdint.h>

#define FILTER_MAGIC 0x58424650u
#define FILTER_VERSION 1u

/* Descriptors that the proxy is started with. 0, 1 and 2 are /dev/null. */
enum {
	FILTER_CONTROL = 3, /* SOCK_SEQPACKET; its end of file ends the proxy at once */
	FILTER_CONFIG = 4,  /* memory file: struct filter_config and its strings */
	FILTER_REPORT = 5,  /* memory file of exactly sizeof(struct filter_report), zero bytes */
};

/*
 * Listeners come in one message of one byte (of any value) with SCM_RIGHTS: stream sockets
 * that listen already, so that what connects before the proxy is up waits in their backlog.
 */
enum { FILTER_LISTENERS_MOST = 8 };

/*
 * Followed by NUL-terminated strings: the name servers ("" for the host's, else a list as
 * ares_set_servers_ports_csv(3) takes it), then allow_count patterns, then deny_count
 * patterns, each as host_pattern.h reads it.  The last byte is a NUL.
 */
struct filter_config {
	uint32_t magic;   /* FILTER_MAGIC */
	uint32_t version; /* FILTER_VERSION */
	uint32_t allow_count;
	uint32_t deny_count;
	uint32_t size; /* of all of it, in bytes */
	uint32_t pad;
};

enum {
	FILTER_ENTRIES = 1024,
	FILTER_HOST_SIZE = 256, /* names have at most 253 bytes */
};

enum filter_verdict { FILTER_ALLOWED = 1, FILTER_DENIED = 2 };

/* What was asked for: one entry for each host, port and verdict. */
struct filter_entry {
	uint32_t verdict; /* enum filter_verdict */
	uint16_t port;
	uint16_t pad;
	uint64_t count;              /* of requests */
	uint64_t bytes;              /* relayed, both directions */
	char host[FILTER_HOST_SIZE]; /* canonical, NUL-terminated; addresses without brackets */
};

/*
 * Updated live.  An entry is whole before `count` covers it; its numbers then only grow.
 * Whoever reads it takes nothing for granted: the proxy speaks to hostile peers.
 */
struct filter_report {
	uint32_t magic;   /* FILTER_MAGIC, once the proxy runs */
	uint32_t count;   /* of entries, at most FILTER_ENTRIES */
	uint64_t dropped; /* requests that found no room */
	struct filter_entry entries[FILTER_ENTRIES];
};

#endif
