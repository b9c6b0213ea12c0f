#include "request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "llhttp.h"

enum { FIELDS_MOST = 256 };

struct span {
	const char *text;
	size_t length;
};

struct field {
	struct span name;
	struct span value;
};

struct request {
	llhttp_t parser;
	struct fields *fields; /* while the head is parsed */
	struct buffer *out;    /* while the body is fed */
	bool chunked;
	bool headed; /* the head's end was reached */
	bool complete;
};

struct fields {
	struct span target;
	struct field list[FIELDS_MOST];
	size_t count;
	bool open; /* the last one's name goes on */
};

/* ---- scanning ---------------------------------------------------------------------------------- */

static bool is_line_wrong(const unsigned char *bytes, size_t at)
{
	unsigned char byte = bytes[at], before = at > 0 ? bytes[at - 1] : 0;
	bool begins = at >= 2 && before == '\n';

	if (byte == '\0' || (byte == '\n') != (before == '\r'))
		return true;
	if (at == 0)
		return byte == '\r';
	return begins && (byte == ' ' || byte == '\t');
}

enum head_state head_scan(const unsigned char *bytes, size_t length, size_t *scanned)
{
	for (; *scanned < length; ++*scanned) {
		size_t at = *scanned;

		if (is_line_wrong(bytes, at))
			return HEAD_WRONG;
		if (at >= 3 && memcmp(bytes + at - 3, "\r\n\r\n", 4) == 0) {
			++*scanned;
			return HEAD_COMPLETE;
		}
	}
	return HEAD_INCOMPLETE;
}

/* ---- llhttp -------------------------------------------------------------------------------------- */

/* Parts of what is in one piece come one after the other. */
static int extend(struct span *span, const char *at, size_t length)
{
	if (span->length == 0)
		span->text = at;
	else if (span->text + span->length != at)
		return -1;
	span->length += length;
	return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t length)
{
	struct request *request = parser->data;

	return extend(&request->fields->target, at, length);
}

/* Names and values behind a chunked body come without `fields`: they are dropped. */
static int on_name(llhttp_t *parser, const char *at, size_t length)
{
	struct fields *fields = ((struct request *)parser->data)->fields;

	if (fields == NULL)
		return 0;
	if (!fields->open) {
		if (fields->count == FIELDS_MOST)
			return -1;
		fields->count++;
		fields->open = true;
	}
	return extend(&fields->list[fields->count - 1].name, at, length);
}

static int on_name_complete(llhttp_t *parser)
{
	struct fields *fields = ((struct request *)parser->data)->fields;

	if (fields != NULL)
		fields->open = false;
	return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
	struct fields *fields = ((struct request *)parser->data)->fields;

	if (fields == NULL)
		return 0;
	return fields->count == 0 ? -1 : extend(&fields->list[fields->count - 1].value, at, length);
}

static int on_head_complete(llhttp_t *parser)
{
	struct request *request = parser->data;

	request->headed = true;
	request->chunked = (parser->flags & F_CHUNKED) != 0;
	/* Nothing is upgraded here: `Upgrade` does not get to the server. */
	if (parser->method != HTTP_CONNECT)
		parser->upgrade = 0;
	return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
	struct request *request = parser->data;

	if (request->out == NULL)
		return -1;
	if (request->chunked && !buffer_print(request->out, "%zx\r\n", length))
		return -1;
	if (!buffer_add(request->out, at, length))
		return -1;
	return request->chunked && !buffer_add(request->out, "\r\n", 2) ? -1 : 0;
}

static int on_complete(llhttp_t *parser)
{
	struct request *request = parser->data;

	request->complete = true;
	if (request->chunked && (request->out == NULL || !buffer_add(request->out, "0\r\n\r\n", 5)))
		return -1;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_url = on_url,
	.on_header_field = on_name,
	.on_header_field_complete = on_name_complete,
	.on_header_value = on_value,
	.on_headers_complete = on_head_complete,
	.on_body = on_body,
	.on_message_complete = on_complete,
};

/* ---- fields ------------------------------------------------------------------------------------- */

static bool is_word(const struct span *span, const char *word)
{
	return span->length == strlen(word) && strncasecmp(span->text, word, span->length) == 0;
}

static bool starts_with(const struct span *span, const char *word)
{
	size_t length = strlen(word);

	return span->length >= length && strncasecmp(span->text, word, length) == 0;
}

static void trim(struct span *span)
{
	while (span->length > 0 && strchr(" \t", span->text[span->length - 1]) != NULL)
		span->length--;
	while (span->length > 0 && strchr(" \t", *span->text) != NULL) {
		span->text++;
		span->length--;
	}
}

/* The only field with that name; NULL where there is none; more of them set *MANY. */
static const struct field *only_field(const struct fields *fields, const char *name, bool *many)
{
	const struct field *found = NULL;

	for (size_t i = 0; i < fields->count; i++) {
		if (!is_word(&fields->list[i].name, name))
			continue;
		if (found != NULL)
			*many = true;
		found = &fields->list[i];
	}
	return found;
}

/* Whether the comma-separated LIST has WORD. */
static bool list_has(struct span list, const struct span *word)
{
	while (list.length > 0) {
		const char *comma = memchr(list.text, ',', list.length);
		struct span item = { list.text, comma == NULL ? list.length : (size_t)(comma - list.text) };
		size_t used = item.length + (comma != NULL);

		list.text += used;
		list.length -= used;
		trim(&item);
		if (item.length == word->length && strncasecmp(item.text, word->text, item.length) == 0)
			return true;
	}
	return false;
}

/* What is between client and proxy only (RFC 9110, 7.6.1), and what is written anew. */
static bool is_dropped(const struct fields *fields, const struct span *name)
{
	static const char *const dropped[] = { "Host",       "Content-Length", "Transfer-Encoding",
		                                   "Connection", "Keep-Alive",     "Upgrade",
		                                   "TE",         "Trailer",        "HTTP2-Settings" };

	for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
		if (is_word(name, dropped[i]))
			return true;
	if (starts_with(name, "Proxy-"))
		return true;
	for (size_t i = 0; i < fields->count; i++)
		if (is_word(&fields->list[i].name, "Connection") && list_has(fields->list[i].value, name))
			return true;
	return false;
}

/* A token and printable text (RFC 9110, 5.5 and 5.6.2): llhttp sees to it too. */
static bool is_field_sound(const struct field *field)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789"
								"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (size_t i = 0; i < field->name.length; i++)
		if (memchr(token, field->name.text[i], sizeof token - 1) == NULL)
			return false;
	for (size_t i = 0; i < field->value.length; i++) {
		unsigned char byte = (unsigned char)field->value.text[i];

		if ((byte < ' ' && byte != '\t') || byte == 0x7f)
			return false;
	}
	return field->name.length > 0;
}

/* ---- the head -------------------------------------------------------------------------------------- */

struct parsing {
	const struct request *request;
	const struct fields *fields;
	struct request_target *target;
	struct span method;
	struct span version;   /* HTTP/1.0 or HTTP/1.1 */
	struct span authority; /* REQUEST_FORWARD */
	struct span path;
};

/* `METHOD target HTTP/1.x`, with single spaces. */
static bool split_line(struct parsing *parsing, const char *head)
{
	const char *end = strstr(head, "\r\n");
	const struct span *target = &parsing->fields->target;
	const char *space = end == NULL ? NULL : memchr(head, ' ', (size_t)(end - head));

	if (space == NULL || target->text != space + 1)
		return false;
	for (size_t i = 0; i < target->length; i++)
		if (target->text[i] <= ' ' || target->text[i] >= 0x7f)
			return false;
	parsing->method = (struct span){ head, (size_t)(space - head) };
	parsing->version.text = target->text + target->length + 1;
	parsing->version.length = strlen("HTTP/1.1");
	return parsing->version.text + parsing->version.length == end &&
	       parsing->version.text[-1] == ' ' &&
	       (memcmp(parsing->version.text, "HTTP/1.1", 8) == 0 ||
	        memcmp(parsing->version.text, "HTTP/1.0", 8) == 0);
}

static bool is_1_0(const struct parsing *parsing)
{
	return parsing->version.text[parsing->version.length - 1] == '0';
}

static const char *check_framing(const struct parsing *parsing)
{
	bool many = false;
	const struct field *encoding = only_field(parsing->fields, "Transfer-Encoding", &many);
	const struct field *length = only_field(parsing->fields, "Content-Length", &many);

	if (many || (encoding != NULL && length != NULL))
		return "its length is given more than once";
	if (parsing->target->kind == REQUEST_CONNECT && (encoding != NULL || length != NULL))
		return "CONNECT has no body";
	if (encoding == NULL)
		return NULL;
	if (!is_word(&encoding->value, "chunked") || is_1_0(parsing))
		return "its transfer coding is not known here";
	return NULL;
}

static const char *parse_connect(struct parsing *parsing)
{
	const struct span *target = &parsing->fields->target;
	const char *wrong = host_parse_port(target->text, target->length, 0, &parsing->target->host,
	                                    &parsing->target->port);
	bool many = false;

	only_field(parsing->fields, "Host", &many);
	return wrong == NULL && many ? "it has more than one Host" : wrong;
}

/* `http://authority/path`, split; what the server gets is the path. */
static const char *split_url(struct parsing *parsing)
{
	static const char scheme[] = "http://";
	struct span rest = parsing->fields->target;

	if (starts_with(&rest, "https://"))
		return "https goes through CONNECT";
	if (!starts_with(&rest, scheme))
		return "a proxy is asked for an http:// URL, or to CONNECT";
	rest.text += sizeof scheme - 1;
	rest.length -= sizeof scheme - 1;
	if (memchr(rest.text, '#', rest.length) != NULL)
		return "the URL has a fragment";
	parsing->authority.text = rest.text;
	while (rest.length > 0 && *rest.text != '/' && *rest.text != '?') {
		if (*rest.text == '@')
			return "the URL has a user";
		rest.text++;
		rest.length--;
	}
	parsing->authority.length = (size_t)(rest.text - parsing->authority.text);
	parsing->path = rest;
	return NULL;
}

static const char *check_host_field(const struct parsing *parsing)
{
	bool many = false;
	const struct field *field = only_field(parsing->fields, "Host", &many);
	struct host host;
	uint16_t port;

	if (field == NULL)
		return NULL;
	if (many)
		return "it has more than one Host";
	if (host_parse_port(field->value.text, field->value.length, 80, &host, &port) != NULL ||
	    strcmp(host.text, parsing->target->host.text) != 0 || port != parsing->target->port)
		return "its Host is not the URL's";
	return NULL;
}

static const char *parse_forward(struct parsing *parsing)
{
	struct request_target *target = parsing->target;
	const char *wrong = split_url(parsing);

	if (wrong == NULL)
		wrong = host_parse_port(parsing->authority.text, parsing->authority.length, 80,
		                        &target->host, &target->port);
	return wrong != NULL ? wrong : check_host_field(parsing);
}

static const char *check(struct parsing *parsing, const char *head)
{
	const struct request *request = parsing->request;
	bool connects = request->parser.method == HTTP_CONNECT;
	const char *wrong;

	if (!split_line(parsing, head))
		return "its first line is malformed";
	for (size_t i = 0; i < parsing->fields->count; i++)
		if (!is_field_sound(&parsing->fields->list[i]))
			return "a field is malformed";
	parsing->target->kind = connects ? REQUEST_CONNECT : REQUEST_FORWARD;
	parsing->target->head_only = request->parser.method == HTTP_HEAD;
	wrong = check_framing(parsing);
	if (wrong != NULL)
		return wrong;
	return connects ? parse_connect(parsing) : parse_forward(parsing);
}

/* ---- the head for the server ----------------------------------------------------------------------- */

static bool add_span(struct buffer *out, const struct span *span)
{
	return buffer_add(out, span->text, span->length);
}

static bool write_line(const struct parsing *parsing, struct buffer *out)
{
	const struct request_target *target = parsing->target;
	bool bracketed = strchr(target->host.text, ':') != NULL;
	const char *before = "";

	if (parsing->path.length == 0)
		before = is_word(&parsing->method, "OPTIONS") ? "*" : "/";
	else if (*parsing->path.text != '/')
		before = "/";
	return add_span(out, &parsing->method) && buffer_print(out, " %s", before) &&
	       add_span(out, &parsing->path) && buffer_add(out, " ", 1) &&
	       add_span(out, &parsing->version) &&
	       buffer_print(out, "\r\nHost: %s%s%s", bracketed ? "[" : "", target->host.text,
	                    bracketed ? "]" : "") &&
	       (target->port == 80 || buffer_print(out, ":%u", target->port)) &&
	       buffer_add(out, "\r\n", 2);
}

static bool write_fields(const struct parsing *parsing, struct buffer *out)
{
	for (size_t i = 0; i < parsing->fields->count; i++) {
		const struct field *field = &parsing->fields->list[i];

		if (!is_dropped(parsing->fields, &field->name) &&
		    !(add_span(out, &field->name) && buffer_add(out, ": ", 2) &&
		      add_span(out, &field->value) && buffer_add(out, "\r\n", 2)))
			return false;
	}
	return true;
}

static bool write_head(const struct parsing *parsing, unsigned long long length, struct buffer *out)
{
	bool has_length = (parsing->request->parser.flags & F_CONTENT_LENGTH) != 0;

	if (!write_line(parsing, out) || !write_fields(parsing, out))
		return false;
	if (has_length && !buffer_print(out, "Content-Length: %llu\r\n", length))
		return false;
	if (parsing->request->chunked && !buffer_print(out, "Transfer-Encoding: chunked\r\n"))
		return false;
	return buffer_print(out, "Connection: close\r\n\r\n");
}

/* ---- requests ---------------------------------------------------------------------------------------- */

/* The length that the only Content-Length names; llhttp has seen that it is a number. */
static unsigned long long body_length(const struct fields *fields)
{
	bool many = false;
	const struct field *field = only_field(fields, "Content-Length", &many);

	return field == NULL ? 0 : strtoull(field->value.text, NULL, 10);
}

/* TEXT is the head with a NUL behind it. */
static bool parse(struct request *request, struct fields *fields, const char *text, size_t length,
                  struct request_target *target, struct buffer *out, const char **wrong)
{
	struct parsing parsing = { .request = request, .fields = fields, .target = target };
	llhttp_errno_t result;

	llhttp_init(&request->parser, HTTP_REQUEST, &settings);
	request->parser.data = request;
	request->fields = fields;
	result = llhttp_execute(&request->parser, text, length);
	request->fields = NULL;
	*wrong = llhttp_get_error_reason(&request->parser);
	if (result != HPE_OK && result != HPE_PAUSED && result != HPE_PAUSED_UPGRADE)
		return false;
	*wrong = "its head is malformed";
	if (!request->headed)
		return false;
	for (size_t i = 0; i < fields->count; i++)
		trim(&fields->list[i].value);
	*wrong = check(&parsing, text);
	if (*wrong != NULL)
		return false;
	*wrong = "memory is exhausted";
	return target->kind == REQUEST_CONNECT || write_head(&parsing, body_length(fields), out);
}

struct request *request_parse(const unsigned char *head, size_t length,
                              struct request_target *target, struct buffer *out, int *status,
                              const char **wrong)
{
	struct request *request = calloc(1, sizeof *request);
	struct fields *fields = calloc(1, sizeof *fields);
	char *text = malloc(length + 1);
	bool fine = false;

	*status = 503;
	*wrong = "memory is exhausted";
	if (request != NULL && fields != NULL && text != NULL) {
		memcpy(text, head, length);
		text[length] = '\0';
		fine = parse(request, fields, text, length, target, out, wrong);
		*status = fields->count == FIELDS_MOST ? 431 : 400;
	}
	free(text);
	free(fields);
	if (fine)
		return request;
	free(request);
	return NULL;
}

bool request_is_complete(const struct request *request)
{
	return request->complete;
}

bool request_feed(struct request *request, const unsigned char *bytes, size_t length,
                  struct buffer *out)
{
	llhttp_errno_t result;

	if (request->complete)
		return true;
	request->out = out;
	result = llhttp_execute(&request->parser, (const char *)bytes, length);
	request->out = NULL;
	return result == HPE_OK || (result == HPE_PAUSED && request->complete);
}

void request_free(struct request *request)
{
	free(request);
}
