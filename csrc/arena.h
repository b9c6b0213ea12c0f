/*
 * A bump allocator: many small objects that are released together.
 *
 * An arena belongs to a userdata, so that a Lua error in the middle of building
 * something leaks nothing: the collector releases the arena whole.
 */
#ifndef EXECSANDBOX_ARENA_H
#define EXECSANDBOX_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *blocks; /* newest first */
};

/* An empty arena needs no initialisation beyond zero bytes. */

/*
 * Returns SIZE zeroed bytes aligned for any type, owned by the arena, or NULL
 * when memory is exhausted.
 */
void *arena_alloc(struct arena *arena, size_t size);

/* As arena_alloc for COUNT elements of SIZE bytes; NULL too when that overflows. */
void *arena_array(struct arena *arena, size_t count, size_t size);

/* A copy of the LENGTH bytes at BYTES with a NUL appended, or NULL. */
char *arena_copy(struct arena *arena, const char *bytes, size_t length);

/* printf into the arena; NULL when memory is exhausted. */
char *arena_format(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Releases everything; the arena is empty and usable again. Idempotent. */
void arena_release(struct arena *arena);

#endif
