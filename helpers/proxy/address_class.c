/* IANA's special-purpose address registries (RFC 6890), and some that are special in practice. */
#include "address_class.h"

#include <string.h>

struct range {
	unsigned char bits[16];
	unsigned length;
	const char *class;
};

/* clang-format off */
static const struct range ranges_v4[] = {
	{ { 0 }, 8, "unspecified" },
	{ { 10 }, 8, "private" },
	{ { 100, 64 }, 10, "shared" }, /* carrier-grade NAT; some clouds' metadata */
	{ { 127 }, 8, "loopback" },
	{ { 168, 63, 129, 16 }, 32, "metadata" }, /* a cloud's, though the number is a public one */
	{ { 169, 254 }, 16, "link-local" },       /* other clouds' metadata too */
	{ { 172, 16 }, 12, "private" },
	{ { 192, 0, 0 }, 24, "reserved" },
	{ { 192, 0, 2 }, 24, "documentation" },
	{ { 192, 88, 99 }, 24, "reserved" },
	{ { 192, 168 }, 16, "private" },
	{ { 198, 18 }, 15, "benchmark" },
	{ { 198, 51, 100 }, 24, "documentation" },
	{ { 203, 0, 113 }, 24, "documentation" },
	{ { 224 }, 4, "multicast" },
	{ { 255, 255, 255, 255 }, 32, "broadcast" },
	{ { 240 }, 4, "reserved" },
};

static const struct range ranges_v6[] = {
	{ { [15] = 0 }, 128, "unspecified" },
	{ { [15] = 1 }, 128, "loopback" },
	{ { 0x00, 0x64, 0xff, 0x9b, 0, 1 }, 48, "private" }, /* local-use NAT64 */
	{ { 0xfc }, 7, "private" },
	{ { 0xfe, 0x80 }, 10, "link-local" },
	{ { 0xfe, 0xc0 }, 10, "site-local" },
	{ { 0xff }, 8, "multicast" },
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, "documentation" },
	{ { 0x3f, 0xff }, 20, "documentation" },
	{ { 0x20, 0x01, 0x00, 0x02, 0, 0 }, 48, "benchmark" },
	{ { 0x20, 0x01, 0x00, 0x10 }, 28, "reserved" }, /* ORCHID */
	{ { 0x20, 0x01, 0x00, 0x20 }, 28, "reserved" },
};

static const struct range global_v6 = { { 0x20 }, 3, NULL };
static const struct range nat64 = { { 0x00, 0x64, 0xff, 0x9b }, 96, NULL };
static const struct range six_to_four = { { 0x20, 0x02 }, 16, NULL };
static const struct range teredo = { { 0x20, 0x01, 0x00, 0x00 }, 32, NULL };
/* clang-format on */

static bool is_in(const unsigned char *bytes, const struct range *range)
{
	unsigned whole = range->length / 8, rest = range->length % 8;

	if (memcmp(bytes, range->bits, whole) != 0)
		return false;
	return rest == 0 || (bytes[whole] ^ range->bits[whole]) >> (8 - rest) == 0;
}

static const char *find(const unsigned char *bytes, const struct range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_in(bytes, &ranges[i]))
			return ranges[i].class;
	return NULL;
}

static const char *class_v4(const unsigned char *bytes)
{
	return find(bytes, ranges_v4, sizeof ranges_v4 / sizeof *ranges_v4);
}

/* RFC 4380: the server's address, and the client's with every bit turned over. */
static const char *class_teredo(const unsigned char *bytes)
{
	unsigned char client[4];
	const char *class = class_v4(bytes + 4);

	for (int i = 0; i < 4; i++)
		client[i] = bytes[12 + i] ^ 0xff;
	return class != NULL ? class : class_v4(client);
}

/* RFC 5214: an interface identifier of 0:5efe or 200:5efe, and the IPv4 address. */
static bool is_isatap(const unsigned char *bytes)
{
	return (bytes[8] & 0xfd) == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe;
}

const char *address_class(const struct host_address *address)
{
	const unsigned char *bytes = address->bytes;
	const char *class;

	if (host_address_is_v4(address))
		return class_v4(bytes + 12);
	if (is_in(bytes, &nat64))
		return class_v4(bytes + 12);
	class = find(bytes, ranges_v6, sizeof ranges_v6 / sizeof *ranges_v6);
	if (class != NULL)
		return class;
	if (!is_in(bytes, &global_v6))
		return "reserved";
	if (is_in(bytes, &six_to_four))
		return class_v4(bytes + 2);
	if (is_in(bytes, &teredo))
		return class_teredo(bytes);
	return is_isatap(bytes) ? class_v4(bytes + 12) : NULL;
}
