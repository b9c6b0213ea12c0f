#include "words.h"

#include <string.h>

void words_add(struct words *words, const char *word)
{
	if (words->count == words->capacity) {
		size_t capacity = words->capacity == 0 ? 64 : words->capacity * 2;
		const char **items = arena_array(words->arena, capacity, sizeof *items);
		if (items == NULL) {
			words->exhausted = true;
			return;
		}
		if (words->count > 0)
			memcpy(items, words->items, words->count * sizeof *items);
		words->items = items;
		words->capacity = capacity;
	}
	words->items[words->count++] = word;
}
