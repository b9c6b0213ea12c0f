/*
 * Rendering bytes as valid UTF-8: malformed input becomes U+FFFD, one for each maximal
 * subpart of an ill-formed sequence (The Unicode Standard, section 3.9, "U+FFFD
 * Substitution of Maximal Subparts"; WHATWG decoders do the same).
 */
#ifndef EXECSANDBOX_UTF8_H
#define EXECSANDBOX_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Looks at the LENGTH (at least 1) bytes at BYTES and returns how many of them the next
 * character, or maximal ill-formed subpart, takes; *VALID tells which.  0: what is
 * there is the beginning of a character, and more bytes would decide.
 */
size_t utf8_next(const unsigned char *bytes, size_t length, bool *valid);

#define UTF8_REPLACEMENT "\xEF\xBF\xBD"
#define UTF8_REPLACEMENT_LENGTH 3

#endif
