#include "arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Blocks double, so that a large arena takes few of them and a small one little. */
enum { FIRST_BLOCK_BYTES = 4096 - 64, LARGEST_BLOCK_BYTES = 64 * 1024 - 64 };

struct arena_block {
	struct arena_block *next;
	size_t used;
	size_t size;
	alignas(max_align_t) unsigned char bytes[];
};

static struct arena_block *add_block(struct arena *arena, size_t size)
{
	size_t room = FIRST_BLOCK_BYTES;
	struct arena_block *block;

	if (arena->blocks != NULL)
		room = arena->blocks->size * 2;
	if (room > LARGEST_BLOCK_BYTES)
		room = LARGEST_BLOCK_BYTES;
	if (room < size)
		room = size;
	if (room > SIZE_MAX - sizeof *block)
		return NULL;
	block = calloc(1, sizeof *block + room);
	if (block == NULL)
		return NULL;
	block->size = room;
	block->next = arena->blocks;
	arena->blocks = block;
	return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);
	struct arena_block *block = arena->blocks;
	void *result;

	if (size > SIZE_MAX - align)
		return NULL;
	size = (size + align - 1) / align * align;
	if (block == NULL || block->size - block->used < size)
		block = add_block(arena, size);
	if (block == NULL)
		return NULL;
	result = block->bytes + block->used;
	block->used += size;
	return result;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
	if (size != 0 && count > SIZE_MAX / size)
		return NULL;
	return arena_alloc(arena, count * size);
}

char *arena_copy(struct arena *arena, const char *bytes, size_t length)
{
	char *copy = length == SIZE_MAX ? NULL : arena_alloc(arena, length + 1);

	if (copy != NULL && length > 0)
		memcpy(copy, bytes, length);
	return copy;
}

char *arena_format(struct arena *arena, const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length < 0)
		return NULL;
	text = arena_alloc(arena, (size_t)length + 1);
	if (text == NULL)
		return NULL;
	va_start(args, format);
	vsnprintf(text, (size_t)length + 1, format, args);
	va_end(args);
	return text;
}

void arena_release(struct arena *arena)
{
	struct arena_block *block = arena->blocks;

	arena->blocks = NULL;
	while (block != NULL) {
		struct arena_block *next = block->next;
		free(block);
		block = next;
	}
}
