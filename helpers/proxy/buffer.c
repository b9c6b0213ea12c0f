#include "buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned char *buffer_room(struct buffer *buffer, size_t size)
{
	if (buffer->start > 0 && buffer->start + buffer->length + size > buffer->size) {
		memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->length);
		buffer->start = 0;
	}
	if (buffer->length + size > buffer->size) {
		size_t wanted = buffer->size * 2;
		unsigned char *bytes;

		if (wanted < buffer->length + size)
			wanted = buffer->length + size;
		bytes = realloc(buffer->bytes, wanted);
		if (bytes == NULL)
			return NULL;
		buffer->bytes = bytes;
		buffer->size = wanted;
	}
	return buffer->bytes + buffer->start + buffer->length;
}

bool buffer_add(struct buffer *buffer, const void *bytes, size_t length)
{
	unsigned char *room = length == 0 ? NULL : buffer_room(buffer, length);

	if (room != NULL) {
		memcpy(room, bytes, length);
		buffer->length += length;
	}
	return room != NULL || length == 0;
}

bool buffer_print(struct buffer *buffer, const char *format, ...)
{
	char text[1024];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return length >= 0 && (size_t)length < sizeof text && buffer_add(buffer, text, (size_t)length);
}

void buffer_take(struct buffer *buffer, size_t length)
{
	buffer->start += length;
	buffer->length -= length;
	if (buffer->length == 0)
		buffer_free(buffer);
}

void buffer_free(struct buffer *buffer)
{
	free(buffer->bytes);
	memset(buffer, 0, sizeof *buffer);
}
