/* A growing list of strings in an arena: arguments, environments. */
#ifndef EXECSANDBOX_WORDS_H
#define EXECSANDBOX_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"

struct words {
	struct arena *arena; /* owns the list; the strings are the caller's, and outlive it */
	const char **items;
	size_t count;
	size_t capacity;
	bool exhausted; /* an addition failed for want of memory: the list is not whole */
};

/* Appends WORD; on exhaustion only sets `exhausted`, so that one check at the end serves. */
void words_add(struct words *words, const char *word);

#endif
