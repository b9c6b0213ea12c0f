#include "utf8.h"

/*
 * The length of a sequence by its first byte, and the range of the second byte, which
 * alone excludes overlong forms, surrogates and what is past U+10FFFF (Table 3-7).
 */
static size_t lead(unsigned char byte, unsigned char *low, unsigned char *high)
{
	*low = 0x80;
	*high = 0xBF;
	if (byte >= 0xC2 && byte <= 0xDF)
		return 2;
	if (byte >= 0xE0 && byte <= 0xEF) {
		if (byte == 0xE0)
			*low = 0xA0;
		if (byte == 0xED)
			*high = 0x9F;
		return 3;
	}
	if (byte >= 0xF0 && byte <= 0xF4) {
		if (byte == 0xF0)
			*low = 0x90;
		if (byte == 0xF4)
			*high = 0x8F;
		return 4;
	}
	return 0;
}

size_t utf8_next(const unsigned char *bytes, size_t length, bool *valid)
{
	unsigned char low, high;
	size_t need, i;

	*valid = true;
	if (bytes[0] < 0x80)
		return 1;
	*valid = false;
	need = lead(bytes[0], &low, &high);
	if (need == 0)
		return 1;
	for (i = 1; i < need; i++) {
		if (i == length)
			return 0;
		if (bytes[i] < low || bytes[i] > high)
			return i;
		low = 0x80;
		high = 0xBF;
	}
	*valid = true;
	return need;
}
