#include "socks.h"

#include <string.h>
#include <sys/socket.h>

enum {
	VERSION = 5,
	NO_AUTHENTICATION = 0,
	NO_METHOD = 0xff,
	COMMAND_CONNECT = 1,
	TYPE_IPV4 = 1,
	TYPE_NAME = 3,
	TYPE_IPV6 = 4,
	CODE_FAILURE = 1,
	CODE_DENIED = 2,
	CODE_HOST_UNREACHABLE = 4,
	CODE_REFUSED = 5,
	CODE_NO_SUCH_COMMAND = 7,
	CODE_NO_SUCH_TYPE = 8,
};

int socks_code(enum failure failure)
{
	switch (failure) {
	case FAILURE_DENIED:
		return CODE_DENIED;
	case FAILURE_UNRESOLVED:
		return CODE_HOST_UNREACHABLE;
	case FAILURE_UNREACHABLE:
	case FAILURE_TIMEOUT:
		return CODE_REFUSED;
	default:
		return CODE_FAILURE;
	}
}

void socks_answer(struct connection *connection, struct buffer *out, int code)
{
	/* The address that it was dialled from is nobody's business: 0.0.0.0:0. */
	const unsigned char answer[10] = { VERSION, (unsigned char)code, 0, TYPE_IPV4 };

	if (!buffer_add(out, answer, sizeof answer))
		connection_close(connection);
}

static void refuse(struct connection *connection, int code)
{
	socks_answer(connection, &connection->down, code);
	if (connection->state != STATE_CLOSED)
		connection_answer(connection);
}

/* VERSION, count, methods. True where it was taken. */
static bool read_methods(struct connection *connection)
{
	const unsigned char *bytes = buffer_head(&connection->in);
	unsigned char answer[2] = { VERSION, NO_AUTHENTICATION };
	size_t length;

	if (connection->in.length < 2 || connection->in.length < (length = 2u + bytes[1]))
		return false;
	if (memchr(bytes + 2, NO_AUTHENTICATION, bytes[1]) == NULL) {
		answer[1] = NO_METHOD;
		if (!buffer_add(&connection->down, answer, sizeof answer))
			connection_close(connection);
		else
			connection_answer(connection);
		return false;
	}
	/* Two bytes find room in the buffer of a socket that nothing was sent to yet. */
	if (send(connection->client, answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL) != 2) {
		connection_close(connection);
		return false;
	}
	buffer_take(&connection->in, length);
	connection->socks_greeted = true;
	return true;
}

/* How long a destination is, from its type on, the port included; 0: more must come first. */
static size_t destination_length(const unsigned char *bytes, size_t length)
{
	switch (bytes[0]) {
	case TYPE_IPV4:
		return 1 + 4 + 2;
	case TYPE_IPV6:
		return 1 + 16 + 2;
	default:
		return length < 2 ? 0 : 2u + bytes[1] + 2;
	}
}

/* False where it is none. */
static bool read_destination(struct request_target *target, const unsigned char *bytes,
                             size_t length)
{
	struct host_address address;

	target->kind = REQUEST_CONNECT;
	target->port = (uint16_t)(bytes[length - 2] << 8 | bytes[length - 1]);
	if (target->port == 0)
		return false;
	switch (bytes[0]) {
	case TYPE_IPV4:
		host_address_set_v4(&address, (uint32_t)bytes[1] << 24 | (uint32_t)bytes[2] << 16 |
		                                  (uint32_t)bytes[3] << 8 | bytes[4]);
		host_set_address(&target->host, &address);
		return true;
	case TYPE_IPV6:
		host_address_set_v6(&address, bytes + 1);
		host_set_address(&target->host, &address);
		return true;
	default:
		return host_parse((const char *)bytes + 2, bytes[1], &target->host) == NULL;
	}
}

/* VERSION, command, 0, type, destination. */
static void read_request(struct connection *connection)
{
	const unsigned char *bytes;
	size_t length;

	if (connection->in.length < 5)
		return;
	bytes = buffer_head(&connection->in);
	if (bytes[0] != VERSION || bytes[2] != 0) {
		refuse(connection, CODE_FAILURE);
		return;
	}
	if (bytes[1] != COMMAND_CONNECT) {
		refuse(connection, CODE_NO_SUCH_COMMAND);
		return;
	}
	if (bytes[3] != TYPE_IPV4 && bytes[3] != TYPE_NAME && bytes[3] != TYPE_IPV6) {
		refuse(connection, CODE_NO_SUCH_TYPE);
		return;
	}
	length = destination_length(bytes + 3, connection->in.length - 3);
	if (connection->in.length < 3 + length)
		return;
	if (!read_destination(&connection->target, bytes + 3, length)) {
		refuse(connection, CODE_FAILURE);
		return;
	}
	buffer_take(&connection->in, 3 + length);
	connection_decide(connection);
}

void socks_read(struct connection *connection)
{
	if (!connection->socks_greeted && !read_methods(connection))
		return;
	read_request(connection);
}
