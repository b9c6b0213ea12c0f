/* The report in shared memory: what was asked for, how often, and how much went through. */
#ifndef EXECSANDBOX_PROXY_REPORT_H
#define EXECSANDBOX_PROXY_REPORT_H

#include "filter_wire.h"

struct report;

/* Maps the report behind FD, a file of its exact size. NULL with errno. */
struct report *report_open(int fd);

/*
 * Counts one request.  Returns its entry, for report_add, or NULL where the report is full: that
 * is counted too.
 */
struct filter_entry *report_count(struct report *report, enum filter_verdict verdict,
                                  const char *host, uint16_t port);

/* BYTES more went through; nothing where ENTRY is NULL. */
void report_add(struct filter_entry *entry, uint64_t bytes);

#endif
