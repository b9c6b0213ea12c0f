#include "report.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { SLOTS = 2 * FILTER_ENTRIES }; /* a power of two */

struct report {
	struct filter_report *shared;
	uint16_t slots[SLOTS]; /* 1 + index of an entry; 0: free */
};

struct report *report_open(int fd)
{
	struct report *report;
	struct stat status;
	void *shared;

	if (fstat(fd, &status) != 0)
		return NULL;
	if (status.st_size != (off_t)sizeof(struct filter_report)) {
		errno = EINVAL;
		return NULL;
	}
	shared = mmap(NULL, sizeof(struct filter_report), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return NULL;
	report = calloc(1, sizeof *report);
	if (report == NULL) {
		munmap(shared, sizeof(struct filter_report));
		return NULL;
	}
	report->shared = shared;
	report->shared->magic = FILTER_MAGIC;
	return report;
}

static uint32_t hash(enum filter_verdict verdict, const char *host, uint16_t port)
{
	uint32_t value = 2166136261u ^ (uint32_t)verdict ^ ((uint32_t)port << 8);

	for (; *host != '\0'; host++)
		value = (value ^ (unsigned char)*host) * 16777619u;
	return value;
}

static bool is_same(const struct filter_entry *entry, enum filter_verdict verdict, const char *host,
                    uint16_t port)
{
	return entry->verdict == (uint32_t)verdict && entry->port == port &&
	       strcmp(entry->host, host) == 0;
}

static struct filter_entry *new_entry(struct filter_report *shared, enum filter_verdict verdict,
                                      const char *host, uint16_t port)
{
	struct filter_entry *entry = &shared->entries[shared->count];

	entry->verdict = verdict;
	entry->port = port;
	strncpy(entry->host, host, sizeof entry->host - 1);
	entry->count = 1;
	/* What is counted is whole, whenever this program ends. */
	__atomic_store_n(&shared->count, shared->count + 1, __ATOMIC_RELEASE);
	return entry;
}

struct filter_entry *report_count(struct report *report, enum filter_verdict verdict,
                                  const char *host, uint16_t port)
{
	struct filter_report *shared = report->shared;
	uint32_t slot = hash(verdict, host, port) % SLOTS;

	for (; report->slots[slot] != 0; slot = (slot + 1) % SLOTS) {
		struct filter_entry *entry = &shared->entries[report->slots[slot] - 1];

		if (!is_same(entry, verdict, host, port))
			continue;
		__atomic_store_n(&entry->count, entry->count + 1, __ATOMIC_RELAXED);
		return entry;
	}
	if (shared->count == FILTER_ENTRIES) {
		__atomic_store_n(&shared->dropped, shared->dropped + 1, __ATOMIC_RELAXED);
		return NULL;
	}
	report->slots[slot] = (uint16_t)(shared->count + 1);
	return new_entry(shared, verdict, host, port);
}

void report_add(struct filter_entry *entry, uint64_t bytes)
{
	if (entry != NULL && bytes != 0)
		__atomic_store_n(&entry->bytes, entry->bytes + bytes, __ATOMIC_RELAXED);
}
