#include "capture.h"

#include <errno.h>
#include <string.h>

#include "number.h"
#include "utf8.h"

#define CAPTURE "execsandbox.Capture"
#define LINES "execsandbox.lines"

enum { CHUNK = 16384, DEFAULT_SAMPLE = 2048 };

static struct stream *check(lua_State *L)
{
	struct stream **slot = luaL_checkudata(L, 1, CAPTURE);

	if (*slot == NULL)
		luaL_error(L, "this Capture has no file");
	return *slot;
}

struct stream **capture_push(lua_State *L)
{
	struct stream **slot = compat_newuserdata(L, sizeof *slot);

	*slot = NULL;
	luaL_getmetatable(L, CAPTURE);
	lua_setmetatable(L, -2);
	return slot;
}

static int collect(lua_State *L)
{
	struct stream **slot = lua_touserdata(L, 1);

	stream_release(*slot);
	*slot = NULL;
	return 0;
}

/* A count of bytes or characters at INDEX, or FALLBACK where there is none. */
static uint64_t optional_count(lua_State *L, int index, uint64_t fallback)
{
	uint64_t value;

	if (lua_isnoneornil(L, index))
		return fallback;
	if (!number_to_u64(L, index, &value))
		luaL_argerror(L, index, "a whole number of at least 0 expected");
	return value;
}

/* ---- bytes ---------------------------------------------------------------- */

static int read_failed(lua_State *L)
{
	return luaL_error(L, "cannot read the capture: %s", strerror(errno));
}

/* Pushes COUNT bytes from OFFSET on, or fewer where the file ends before. */
static void push_bytes(lua_State *L, const struct stream *stream, uint64_t offset, uint64_t count)
{
	uint64_t size = stream_size(stream);
	luaL_Buffer buffer;

	count = offset >= size ? 0 : count < size - offset ? count : size - offset;
	luaL_buffinit(L, &buffer);
	while (count > 0) {
		size_t want = count < COMPAT_ROOM ? (size_t)count : COMPAT_ROOM;
		char *place = compat_prepbuffer(&buffer, want);
		ssize_t got = stream_read(stream, place, want, offset);

		if (got < 0)
			read_failed(L);
		if (got <= 0)
			break;
		luaL_addsize(&buffer, (size_t)got);
		offset += (uint64_t)got;
		count -= (uint64_t)got;
	}
	luaL_pushresult(&buffer);
}

/* capture:read([offset [, count]]) → bytes */
static int method_read(lua_State *L)
{
	const struct stream *stream = check(L);
	uint64_t offset = optional_count(L, 2, 0);
	uint64_t count = optional_count(L, 3, UINT64_MAX);

	push_bytes(L, stream, offset, count);
	return 1;
}

static uint64_t sample_option(lua_State *L, const char *name)
{
	uint64_t value = DEFAULT_SAMPLE;

	if (!lua_istable(L, 2))
		return value;
	lua_getfield(L, 2, name);
	if (!lua_isnil(L, -1) && !number_to_u64(L, -1, &value))
		luaL_error(L, "bad option '%s' to 'sample' (a whole number of at least 0 expected)", name);
	lua_pop(L, 1);
	return value;
}

static void check_sample_options(lua_State *L)
{
	if (lua_isnoneornil(L, 2))
		return;
	luaL_checktype(L, 2, LUA_TTABLE);
	lua_pushnil(L);
	while (lua_next(L, 2) != 0) {
		const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
		if (strcmp(name, "head_bytes") != 0 && strcmp(name, "tail_bytes") != 0)
			luaL_error(L, "bad option '%s' to 'sample'", name);
		lua_pop(L, 1);
	}
}

/* capture:sample{ head_bytes, tail_bytes } → head, tail, bytes left out between them */
static int method_sample(lua_State *L)
{
	const struct stream *stream = check(L);
	uint64_t size, head, tail;

	check_sample_options(L);
	head = sample_option(L, "head_bytes");
	tail = sample_option(L, "tail_bytes");
	size = stream_size(stream); /* once: a running command goes on writing */
	head = head < size ? head : size;
	tail = tail < size - head ? tail : size - head;
	push_bytes(L, stream, 0, head);
	push_bytes(L, stream, size - tail, tail);
	lua_pushinteger(L, (lua_Integer)(size - head - tail));
	return 3;
}

/* ---- text ------------------------------------------------------------------- */

struct renderer {
	luaL_Buffer *buffer;
	uint64_t left; /* characters that may still be added */
	bool truncated;
};

/*
 * Renders what can be decided of the LENGTH bytes and returns how many that were; LAST
 * says that no more will come.
 */
static size_t render(struct renderer *r, const char *bytes, size_t length, bool last)
{
	const unsigned char *unsigned_bytes = (const unsigned char *)bytes;
	size_t done = 0, copied = 0;

	while (done < length) {
		bool valid;
		size_t next = utf8_next(unsigned_bytes + done, length - done, &valid);

		if (next == 0 && !last)
			break;
		if (r->left == 0) {
			r->truncated = true;
			break;
		}
		r->left--;
		if (valid) {
			done += next;
			continue;
		}
		luaL_addlstring(r->buffer, bytes + copied, done - copied);
		luaL_addlstring(r->buffer, UTF8_REPLACEMENT, UTF8_REPLACEMENT_LENGTH);
		done = next == 0 ? length : done + next;
		copied = done;
	}
	luaL_addlstring(r->buffer, bytes + copied, done - copied);
	return done;
}

/* capture:text([limit]) → valid UTF-8 of at most LIMIT characters, whether there was more */
static int method_text(lua_State *L)
{
	const struct stream *stream = check(L);
	uint64_t limit = optional_count(L, 2, UINT64_MAX);
	uint64_t size = stream_size(stream), offset = 0;
	bool running = stream->status == STREAM_RUNNING;
	char chunk[CHUNK];
	luaL_Buffer buffer;
	struct renderer renderer = { &buffer, limit, false };

	luaL_buffinit(L, &buffer);
	/* A character has at most 4 bytes; what is malformed may take more than it was. */
	compat_reserve(&buffer, (size_t)(limit < size / 4 ? limit * 4 : size));
	while (offset < size && !renderer.truncated) {
		size_t want = size - offset < sizeof chunk ? (size_t)(size - offset) : sizeof chunk;
		ssize_t got = stream_read(stream, chunk, want, offset);
		size_t done;

		if (got < 0)
			return read_failed(L);
		if (got == 0)
			break;
		done = render(&renderer, chunk, (size_t)got, !running && offset + (uint64_t)got == size);
		if (done == 0)
			break;
		offset += done;
	}
	luaL_pushresult(&buffer);
	lua_pushboolean(L, renderer.truncated);
	return 2;
}

int capture_decode(lua_State *L)
{
	size_t length;
	const char *bytes = luaL_checklstring(L, 1, &length);
	luaL_Buffer buffer;
	struct renderer renderer = { &buffer, UINT64_MAX, false };

	luaL_buffinit(L, &buffer);
	render(&renderer, bytes, length, true);
	luaL_pushresult(&buffer);
	return 1;
}

/* ---- lines ------------------------------------------------------------------ */

struct lines {
	struct stream *stream; /* a reference */
	uint64_t offset;       /* of the file, where `bytes` was read up to */
	size_t start, end;     /* what of `bytes` is still to give */
	char bytes[LUAL_BUFFERSIZE];
};

static int collect_lines(lua_State *L)
{
	struct lines *lines = lua_touserdata(L, 1);

	stream_release(lines->stream);
	lines->stream = NULL;
	return 0;
}

static bool refill(lua_State *L, struct lines *lines)
{
	ssize_t got = stream_read(lines->stream, lines->bytes, sizeof lines->bytes, lines->offset);

	if (got < 0)
		read_failed(L);
	lines->start = 0;
	lines->end = (size_t)got;
	lines->offset += (uint64_t)got;
	return got > 0;
}

static int next_line(lua_State *L)
{
	struct lines *lines = lua_touserdata(L, lua_upvalueindex(1));
	bool any = false;
	luaL_Buffer buffer;

	luaL_buffinit(L, &buffer);
	while (lines->start < lines->end || refill(L, lines)) {
		const char *from = lines->bytes + lines->start;
		const char *newline = memchr(from, '\n', lines->end - lines->start);
		size_t length = newline == NULL ? lines->end - lines->start : (size_t)(newline - from);

		any = true;
		luaL_addlstring(&buffer, from, length);
		lines->start += length + (newline != NULL);
		if (newline != NULL)
			break;
	}
	luaL_pushresult(&buffer);
	return any;
}

/* for line in capture:lines() do … end: without the newline, bytes as they are */
static int method_lines(lua_State *L)
{
	struct stream *stream = check(L);
	struct lines *lines = compat_newuserdata(L, sizeof *lines);

	lines->stream = NULL;
	lines->offset = 0;
	lines->start = lines->end = 0;
	luaL_getmetatable(L, LINES);
	lua_setmetatable(L, -2);
	lines->stream = stream_hold(stream);
	lua_pushcclosure(L, next_line, 1);
	return 1;
}

/* ---- fields ------------------------------------------------------------------ */

static int get_path(lua_State *L, const struct stream *stream)
{
	if (stream->path == NULL)
		lua_pushnil(L);
	else
		lua_pushstring(L, stream->path);
	return 1;
}

static int index_field(lua_State *L)
{
	struct stream **slot = luaL_checkudata(L, 1, CAPTURE);
	const char *name = luaL_checkstring(L, 2);
	const struct stream *stream = *slot;

	lua_pushvalue(L, 2);
	lua_rawget(L, lua_upvalueindex(1));
	if (!lua_isnil(L, -1) || stream == NULL)
		return 1;
	lua_pop(L, 1);
	if (strcmp(name, "path") == 0)
		return get_path(L, stream);
	if (strcmp(name, "retained") == 0)
		lua_pushboolean(L, stream->retained);
	else if (strcmp(name, "byte_count") == 0)
		lua_pushinteger(L, (lua_Integer)(stream->status == STREAM_RUNNING ? stream_size(stream)
		                                                                  : stream->stored));
	else if (strcmp(name, "observed_byte_count") == 0)
		lua_pushinteger(L, (lua_Integer)stream->observed);
	else if (strcmp(name, "complete") == 0)
		lua_pushboolean(L, stream->status == STREAM_COMPLETE);
	else if (strcmp(name, "truncated") == 0)
		lua_pushboolean(L, stream->status != STREAM_RUNNING && stream->observed > stream->stored);
	else if (strcmp(name, "status") == 0)
		lua_pushstring(L, stream_status_name(stream->status));
	else
		lua_pushnil(L);
	return 1;
}

static int to_string(lua_State *L)
{
	struct stream **slot = luaL_checkudata(L, 1, CAPTURE);

	if (*slot == NULL)
		lua_pushliteral(L, "Capture: none");
	else
		lua_pushfstring(L, "Capture: %s, %s", stream_status_name((*slot)->status),
		                (*slot)->path == NULL ? "anonymous" : (*slot)->path);
	return 1;
}

static const luaL_Reg methods[] = { { "read", method_read },
	                                { "sample", method_sample },
	                                { "text", method_text },
	                                { "lines", method_lines },
	                                { NULL, NULL } };

static const luaL_Reg metamethods[] = { { "__gc", collect },
	                                    { "__tostring", to_string },
	                                    { NULL, NULL } };

void capture_register(lua_State *L)
{
	luaL_newmetatable(L, CAPTURE);
	compat_setfuncs(L, metamethods);
	lua_newtable(L);
	compat_setfuncs(L, methods);
	lua_pushcclosure(L, index_field, 1);
	lua_setfield(L, -2, "__index");
	lua_pushliteral(L, CAPTURE);
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 1);

	luaL_newmetatable(L, LINES);
	lua_pushcfunction(L, collect_lines);
	lua_setfield(L, -2, "__gc");
	lua_pushboolean(L, 0);
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 1);
}
