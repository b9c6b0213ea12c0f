#include "host_pattern.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* ---- addresses ------------------------------------------------------------------------------ */

static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

bool host_address_is_v4(const struct host_address *address)
{
	return memcmp(address->bytes, mapped, sizeof mapped) == 0;
}

void host_address_set_v4(struct host_address *address, uint32_t value)
{
	memcpy(address->bytes, mapped, sizeof mapped);
	for (int i = 0; i < 4; i++)
		address->bytes[12 + i] = (unsigned char)(value >> (24 - 8 * i));
}

void host_set_address(struct host *host, const struct host_address *address)
{
	bool v4 = host_address_is_v4(address);

	memset(host, 0, sizeof *host);
	host->is_address = true;
	host->address = *address;
	inet_ntop(v4 ? AF_INET : AF_INET6, address->bytes + (v4 ? 12 : 0), host->text,
	          sizeof host->text);
}

/* `::a.b.c.d`, deprecated and still understood by some; not `::` and `::1`. */
static bool is_compatible(const struct host_address *address)
{
	static const unsigned char zero[12];
	const unsigned char *low = address->bytes + 12;

	return memcmp(address->bytes, zero, sizeof zero) == 0 &&
	       (low[0] != 0 || low[1] != 0 || low[2] != 0 || low[3] > 1);
}

void host_address_set_v6(struct host_address *address, const unsigned char bytes[16])
{
	memcpy(address->bytes, bytes, sizeof address->bytes);
	if (is_compatible(address))
		memcpy(address->bytes, mapped, sizeof mapped);
}

static const char *parse_v6(const char *text, size_t length, struct host *host)
{
	char copy[INET6_ADDRSTRLEN];
	unsigned char bytes[16];
	struct host_address address;

	if (memchr(text, '%', length) != NULL)
		return "an IPv6 address cannot have a zone here";
	if (length >= sizeof copy)
		return "it is no IPv6 address";
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (strlen(copy) != length || inet_pton(AF_INET6, copy, bytes) != 1)
		return "it is no IPv6 address";
	host_address_set_v6(&address, bytes);
	host_set_address(host, &address);
	return NULL;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* A number as inet_aton(3) writes them: 0x for hexadecimal, 0 for octal. False if it is none. */
static bool read_number(const char *text, size_t length, uint64_t *value)
{
	unsigned base = 10;

	if (length >= 2 && text[0] == '0' && text[1] == 'x') {
		base = 16;
		text += 2;
		length -= 2;
	} else if (length >= 2 && text[0] == '0') {
		base = 8;
	}
	if (length == 0)
		return false;
	for (*value = 0; length > 0; text++, length--) {
		unsigned digit = (unsigned)digit_of(*text);

		if (digit >= base)
			return false;
		*value = *value * base + digit;
		if (*value > UINT32_MAX)
			return false;
	}
	return true;
}

/*
 * Whether the last label of a name is a number, or starts as one in hexadecimal.  No name of
 * the DNS ends so, and resolvers differ in what they take it for: it is an address or nothing
 * (as in the URL Standard of WHATWG).
 */
static bool ends_in_number(const char *name)
{
	const char *last = strrchr(name, '.');

	last = last == NULL ? name : last + 1;
	if (last[0] == '0' && last[1] == 'x')
		return last[2 + strspn(last + 2, "0123456789abcdef")] == '\0';
	return last[strspn(last, "0123456789")] == '\0';
}

/* One to four numbers; the last one fills the bytes that are left. */
static bool parse_v4(const char *text, struct host_address *address)
{
	uint32_t high = 0;

	for (int part = 0; part < 4; part++) {
		size_t length = strcspn(text, ".");
		uint64_t value;

		if (!read_number(text, length, &value))
			return false;
		if (text[length] == '\0') {
			if (value >> (32 - 8 * part) != 0)
				return false;
			host_address_set_v4(address, high | (uint32_t)value);
			return true;
		}
		if (value > 255 || part == 3)
			return false;
		high |= (uint32_t)value << (24 - 8 * part);
		text += length + 1;
	}
	return false;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static const char *check_labels(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";

	for (;;) {
		size_t length = strspn(name, letters);

		if (length == 0 && (*name == '.' || *name == '\0'))
			return "a label of the name is empty";
		if ((unsigned char)name[length] >= 0x80)
			return "a name has ASCII letters only; write the 'xn--' form of an international one";
		if (name[length] != '.' && name[length] != '\0')
			return "a name has letters, digits, '-', '_' and '.' only";
		if (length > 63)
			return "a label of the name is longer than 63 bytes";
		if (name[length] == '\0')
			return NULL;
		name += length + 1;
	}
}

/* What is no address in brackets. */
static const char *parse_name(const char *text, size_t length, struct host *host)
{
	struct host_address address;
	const char *wrong;

	if (length > 0 && text[length - 1] == '.')
		length--;
	if (length == 0)
		return "it is empty";
	if (length > 253)
		return "a name has at most 253 bytes";
	if (memchr(text, '\0', length) != NULL)
		return "it contains a NUL byte";
	memset(host, 0, sizeof *host);
	for (size_t i = 0; i < length; i++)
		host->text[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
	wrong = check_labels(host->text);
	if (wrong != NULL || !ends_in_number(host->text))
		return wrong;
	if (!parse_v4(host->text, &address))
		return "it ends in a number and is no IPv4 address";
	host_set_address(host, &address);
	return NULL;
}

const char *host_parse(const char *text, size_t length, struct host *host)
{
	if (length > 0 && text[0] == '[') {
		if (length < 2 || text[length - 1] != ']')
			return "a bracket is not closed";
		return parse_v6(text + 1, length - 2, host);
	}
	if (memchr(text, ':', length) != NULL)
		return parse_v6(text, length, host);
	return parse_name(text, length, host);
}

/* ---- ports ------------------------------------------------------------------------------------- */

static bool read_port(const char *text, size_t length, uint16_t *port)
{
	unsigned value = 0;

	if (length == 0 || length > 5)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (unsigned)(text[i] - '0');
	}
	*port = (uint16_t)value;
	return value >= 1 && value <= 65535;
}

/* Where the host ends: at its port's colon, or at the end. */
static size_t host_length(const char *text, size_t length)
{
	const char *from = text;
	const char *colon;

	if (length > 0 && text[0] == '[') {
		const char *bracket = memchr(text, ']', length);

		from = bracket == NULL ? text + length : bracket + 1;
		return (size_t)(from - text);
	}
	colon = memchr(from, ':', length);
	return colon == NULL ? length : (size_t)(colon - text);
}

static const char *parse_rest(const char *rest, size_t length, uint16_t *port)
{
	if (length == 0)
		return NULL;
	if (rest[0] != ':' || !read_port(rest + 1, length - 1, port))
		return "a port is a number from 1 to 65535";
	return NULL;
}

const char *host_parse_port(const char *text, size_t length, uint16_t default_port,
                            struct host *host, uint16_t *port)
{
	size_t end = host_length(text, length);
	const char *wrong;

	*port = default_port;
	wrong = parse_rest(text + end, length - end, port);
	if (wrong == NULL && *port == 0)
		wrong = "it has no port";
	return wrong != NULL ? wrong : host_parse(text, end, host);
}

/* ---- patterns ---------------------------------------------------------------------------------- */

/*
 * An IPv6 address without brackets, which has no port.  Where what stands before its last
 * colon is an address too, a port may have been meant.
 */
static const char *parse_bare_v6(const char *text, struct host_pattern *pattern)
{
	const char *colon = strrchr(text, ':');
	struct host other;
	uint16_t port;

	if (read_port(colon + 1, strlen(colon + 1), &port) &&
	    parse_v6(text, (size_t)(colon - text), &other) == NULL)
		return "write an IPv6 address in brackets, so that its port can be told from it";
	return parse_v6(text, strlen(text), &pattern->host);
}

static bool is_bare_v6(const char *text)
{
	const char *colon = strchr(text, ':');

	return text[0] != '[' && text[0] != '*' && colon != NULL && strchr(colon + 1, ':') != NULL;
}

const char *host_pattern_parse(const char *text, struct host_pattern *pattern)
{
	size_t end = host_length(text, strlen(text));
	const char *wrong;

	memset(pattern, 0, sizeof *pattern);
	if (is_bare_v6(text))
		return parse_bare_v6(text, pattern);
	wrong = parse_rest(text + end, strlen(text + end), &pattern->port);
	if (wrong != NULL)
		return wrong;
	if (text[0] != '*')
		return host_parse(text, end, &pattern->host);
	pattern->kind = PATTERN_NAME;
	if (end == 1)
		return NULL;
	if (text[1] != '.')
		return "'*' stands alone, or before '.' and a name";
	pattern->kind = PATTERN_SUBDOMAIN;
	wrong = host_parse(text + 2, end - 2, &pattern->host);
	if (wrong == NULL && pattern->host.is_address)
		wrong = "an address has no names below it";
	return wrong;
}

void host_pattern_format(const struct host_pattern *pattern, char out[PATTERN_TEXT_SIZE])
{
	const struct host *host = &pattern->host;
	bool bracketed = pattern->kind == PATTERN_HOST && strchr(host->text, ':') != NULL;
	const char *const before[] = {
		[PATTERN_HOST] = bracketed ? "[" : "", [PATTERN_SUBDOMAIN] = "*.", [PATTERN_NAME] = "*"
	};
	int length = snprintf(out, PATTERN_TEXT_SIZE, "%s%s%s", before[pattern->kind], host->text,
	                      bracketed ? "]" : "");

	if (pattern->port != 0)
		snprintf(out + length, PATTERN_TEXT_SIZE - (size_t)length, ":%u", pattern->port);
}

static bool is_below(const char *name, const char *domain)
{
	size_t length = strlen(name), tail = strlen(domain);

	return length > tail + 1 && name[length - tail - 1] == '.' &&
	       strcmp(name + length - tail, domain) == 0;
}

bool host_pattern_matches(const struct host_pattern *pattern, const struct host *host,
                          uint16_t port)
{
	if (pattern->port != 0 && pattern->port != port)
		return false;
	switch (pattern->kind) {
	case PATTERN_HOST:
		return pattern->host.is_address == host->is_address &&
		       strcmp(pattern->host.text, host->text) == 0;
	case PATTERN_SUBDOMAIN:
		return !host->is_address && is_below(host->text, pattern->host.text);
	case PATTERN_NAME:
		return !host->is_address;
	}
	return false;
}
