/* Bytes that come at one end and go at the other. */
#ifndef EXECSANDBOX_PROXY_BUFFER_H
#define EXECSANDBOX_PROXY_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

/* All zero: empty, and owns nothing. */
struct buffer {
	unsigned char *bytes;
	size_t start; /* of what is held */
	size_t length;
	size_t size;
};

/* Where the next SIZE bytes may be put (then add to `length`), or NULL without memory. */
unsigned char *buffer_room(struct buffer *buffer, size_t size);

/* Appends. False without memory, and then nothing is. */
bool buffer_add(struct buffer *buffer, const void *bytes, size_t length);

/* printf(3) to the end; for short texts. False without memory. */
bool buffer_print(struct buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The first byte that is held. */
static inline unsigned char *buffer_head(const struct buffer *buffer)
{
	return buffer->bytes + buffer->start;
}

/* Drops the first LENGTH bytes; what gets empty gives its memory back. */
void buffer_take(struct buffer *buffer, size_t length);

void buffer_free(struct buffer *buffer);

#endif
