#include "http.h"

#include <stdio.h>
#include <string.h>

const char http_established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

static const char *status_of(enum failure failure)
{
	switch (failure) {
	case FAILURE_MALFORMED:
		return "400 Bad Request";
	case FAILURE_TOO_LARGE:
		return "431 Request Header Fields Too Large";
	case FAILURE_SLOW:
		return "408 Request Timeout";
	case FAILURE_DENIED:
		return "403 Forbidden";
	case FAILURE_UNRESOLVED:
	case FAILURE_UNREACHABLE:
		return "502 Bad Gateway";
	case FAILURE_TIMEOUT:
		return "504 Gateway Timeout";
	case FAILURE_RESOURCES:
		break;
	}
	return "503 Service Unavailable";
}

/* The canonical host has nothing that would have to be escaped. */
static void word(const struct connection *connection, enum failure failure, const char *reason,
                 char *text, size_t size)
{
	const struct request_target *target = &connection->target;
	bool bracketed = strchr(target->host.text, ':') != NULL;

	if (target->port == 0 || failure == FAILURE_MALFORMED) {
		snprintf(text, size, "execsandbox: the request is refused: %s\n", reason);
		return;
	}
	snprintf(text, size, "execsandbox: %s%s%s:%u %s: %s\n", bracketed ? "[" : "", target->host.text,
	         bracketed ? "]" : "", target->port,
	         failure == FAILURE_DENIED ? "is refused" : "cannot be reached", reason);
}

void http_answer(struct connection *connection, enum failure failure, const char *reason)
{
	char text[HOST_TEXT_SIZE + REASON_SIZE + 64];
	struct buffer *out = &connection->down;

	word(connection, failure, reason, text, sizeof text);
	if (!buffer_print(out,
	                  "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=us-ascii\r\n"
	                  "Content-Length: %zu\r\nConnection: close\r\n\r\n",
	                  status_of(failure), strlen(text)) ||
	    (!connection->target.head_only && !buffer_add(out, text, strlen(text))))
		connection_close(connection);
}

static void parse(struct connection *connection)
{
	const char *wrong;
	int status;

	connection->request = request_parse(buffer_head(&connection->in), connection->scanned,
	                                    &connection->target, &connection->up, &status, &wrong);
	if (connection->request == NULL) {
		connection->target.port = 0;
		connection_fail(connection,
		                status == 431   ? FAILURE_TOO_LARGE
		                : status == 503 ? FAILURE_RESOURCES
		                                : FAILURE_MALFORMED,
		                wrong);
		return;
	}
	buffer_take(&connection->in, connection->scanned);
	connection_decide(connection);
}

void http_read(struct connection *connection)
{
	switch (head_scan(buffer_head(&connection->in), connection->in.length, &connection->scanned)) {
	case HEAD_WRONG:
		connection_fail(connection, FAILURE_MALFORMED, "its head is malformed");
		return;
	case HEAD_COMPLETE:
		parse(connection);
		return;
	case HEAD_INCOMPLETE:
		if (connection->in.length >= HEAD_MOST)
			connection_fail(connection, FAILURE_TOO_LARGE, "its head is larger than 64 KiB");
		return;
	}
}
