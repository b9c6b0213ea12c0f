/*
 * Patterns in git's style, as `rg --glob` reads them, compiled together into one
 * automaton.  Matching is on bytes, and takes time linear in the path: a hostile file
 * name cannot make it slow.
 *
 *   *  ?  [a-z]  [!a]  [^a]     as usual; `*` and `?` do not match a slash
 *   **                          special as a whole component only
 *   {a,b}                       alternatives, not nested
 *   \x                          x itself
 *   a trailing slash            directories only
 *   a slash elsewhere           anchored at the root of the search; otherwise any depth
 */
#ifndef EXECSANDBOX_GLOB_H
#define EXECSANDBOX_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "failure.h"

enum glob_operation { GLOB_BYTES, GLOB_SPLIT, GLOB_MATCH };

struct glob_state {
	enum glob_operation operation;
	uint32_t next;         /* GLOB_BYTES, GLOB_SPLIT */
	uint32_t other;        /* GLOB_SPLIT */
	uint32_t pattern;      /* GLOB_MATCH: what glob_add was told */
	bool directories_only; /* GLOB_MATCH */
	uint64_t bytes[4];     /* GLOB_BYTES: the set of bytes that lead on */
};

/* A set of patterns. Zeroed is empty. */
struct globs {
	struct arena *arena;
	struct glob_state *states;
	size_t count;
	size_t room;
	uint32_t *starts;
	size_t start_count;
	size_t start_room;
};

/*
 * Adds TEXT under NUMBER.  0, or -1 with FAILURE (kind policy) where it is malformed
 * or can match nothing.
 */
int glob_add(struct globs *globs, const char *text, uint32_t number, struct failure *failure);

/* Whether TEXT is well-formed: 0, or -1 with FAILURE. */
int glob_check(const char *text, struct failure *failure);

/* ---- matching ------------------------------------------------------------------------ */

/*
 * The automaton made deterministic while it is used: each state is a set of places in
 * the patterns, each transition is computed once.
 */
struct glob_machine;

#define GLOB_NONE UINT32_MAX

/* NULL when memory is exhausted. GLOBS must outlive it. */
struct glob_machine *glob_machine_new(const struct globs *globs);
void glob_machine_free(struct glob_machine *machine);

/* The state before anything was read; GLOB_NONE as below. */
uint32_t glob_machine_start(struct glob_machine *machine);

/* The state after LENGTH more BYTES; GLOB_NONE when there can be no more states. */
uint32_t glob_machine_read(struct glob_machine *machine, uint32_t state, const char *bytes,
                           size_t length);

/* The lowest number among the patterns that match what was read, or GLOB_NONE. */
uint32_t glob_machine_match(const struct glob_machine *machine, uint32_t state, bool directory);

/* Why there can be no more, where the globs are matched below DISPLAY; always -1. */
int glob_machine_failure(const struct glob_machine *machine, const char *display,
                         struct failure *failure);

/* Whether nothing that follows can match any more. */
bool glob_machine_dead(const struct glob_machine *machine, uint32_t state);

#endif
