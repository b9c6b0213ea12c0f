/*
 * Reading patterns.  The rules are those of ripgrep's ignore and globset crates (an
 * override pattern, case-sensitive, literal separators), so that a pattern masks here
 * what it lists there.
 */
#include "glob.h"

#include <stdio.h>
#include <string.h>

#include "path.h"

#define NO_STATE UINT32_MAX
enum { STATES_MAX = 1 << 20 };

struct reader {
	struct globs *globs;
	struct failure *failure;
	const char *written;
	const unsigned char *text;
	size_t at;
	int previous;         /* the byte before the one that is being read; -1 at the start */
	bool recursive;       /* this token is a special `**`, with the slash behind it */
	bool after_recursive; /* the token before was */
	bool tokens;          /* something was read in this pattern, or in this alternative */
	bool alternating;     /* within braces */
	uint32_t split;       /* of the last alternative that is not empty, or NO_STATE */
	uint32_t branch;      /* where the alternative that is being read starts */
	uint32_t jumps;       /* the ends of alternatives, chained by `other` */
};

/* ---- emitting --------------------------------------------------------------------- */

static struct glob_state *emit(struct globs *globs, enum glob_operation operation)
{
	struct glob_state *state;

	if (globs->count == globs->room) {
		size_t room = globs->room == 0 ? 64 : globs->room * 2;
		struct glob_state *states = arena_array(globs->arena, room, sizeof *states);
		if (states == NULL || room > STATES_MAX)
			return NULL;
		if (globs->count > 0)
			memcpy(states, globs->states, globs->count * sizeof *states);
		globs->states = states;
		globs->room = room;
	}
	state = &globs->states[globs->count++];
	memset(state, 0, sizeof *state);
	state->operation = operation;
	state->next = (uint32_t)globs->count;
	return state;
}

static void include(struct glob_state *state, unsigned byte)
{
	state->bytes[byte / 64] |= UINT64_C(1) << byte % 64;
}

static void invert(struct glob_state *state)
{
	for (size_t i = 0; i < 4; i++)
		state->bytes[i] = ~state->bytes[i];
}

static bool emit_byte(struct globs *globs, unsigned byte)
{
	struct glob_state *state = emit(globs, GLOB_BYTES);

	if (state != NULL)
		include(state, byte);
	return state != NULL;
}

/* Any byte, or any but a slash. */
static bool emit_any(struct globs *globs, bool slash)
{
	struct glob_state *state = emit(globs, GLOB_BYTES);

	if (state == NULL)
		return false;
	if (!slash)
		include(state, '/');
	invert(state);
	return true;
}

/* Any number of those. */
static bool emit_star(struct globs *globs, bool slash)
{
	uint32_t at = (uint32_t)globs->count;

	if (emit(globs, GLOB_SPLIT) == NULL || !emit_any(globs, slash))
		return false;
	globs->states[at].other = at + 2;
	globs->states[at + 1].next = at;
	return true;
}

/* Nothing, or whole components with the slash behind them. */
static bool emit_components(struct globs *globs)
{
	uint32_t at = (uint32_t)globs->count;

	if (emit(globs, GLOB_SPLIT) == NULL || !emit_star(globs, true) || !emit_byte(globs, '/'))
		return false;
	globs->states[at].other = at + 4;
	return true;
}

/* ---- reading ------------------------------------------------------------------------ */

static int bad(struct reader *reader, const char *what)
{
	return failure_policy(reader->failure, "The glob '%s' is malformed: %s.", reader->written,
	                      what);
}

static int out_of_memory(struct reader *reader)
{
	return failure_memory(reader->failure);
}

static int next(struct reader *reader)
{
	int byte = reader->text[reader->at];

	if (byte != '\0')
		reader->at++;
	return byte;
}

static int peek(const struct reader *reader)
{
	return reader->text[reader->at];
}

struct range {
	int first, last;
};

/* One `[…]`; a backslash is itself in it, as in globset. */
static int read_class(struct reader *reader)
{
	struct globs *globs = reader->globs;
	struct glob_state *state = emit(globs, GLOB_BYTES);
	bool negated = peek(reader) == '!' || peek(reader) == '^';
	bool first = true, in_range = false;
	struct range last = { 0, 0 };
	int byte;

	if (state == NULL)
		return out_of_memory(reader);
	if (negated)
		next(reader);
	for (; (byte = next(reader)) != ']' || first; first = false) {
		if (byte == '\0')
			return bad(reader, "a '[' is not closed");
		if (byte == '-' && !first && !in_range) {
			in_range = true;
			continue;
		}
		if (in_range) {
			last.last = byte;
			in_range = false;
			if (last.last < last.first)
				return bad(reader, "a range in '[…]' is backwards");
		} else {
			last = (struct range){ byte, byte };
		}
		for (int i = last.first; i <= last.last; i++)
			include(state, (unsigned)i);
	}
	if (in_range)
		include(state, '-');
	if (negated)
		invert(state);
	return 0;
}

static int read_stars(struct reader *reader)
{
	struct globs *globs = reader->globs;
	bool starts = !reader->tokens;
	int before = reader->previous, after;

	if (peek(reader) != '*')
		return emit_star(globs, false) ? 0 : out_of_memory(reader);
	next(reader);
	after = peek(reader);
	/* Only a whole component is special; otherwise two stars are two stars. */
	if ((!starts && before != '/') ||
	    !(after == '/' || after == '\0' ||
	      (!starts && reader->alternating && (after == ',' || after == '}'))))
		return emit_star(globs, false) ? 0 : out_of_memory(reader);
	if (after == '/') {
		reader->previous = '/';
		next(reader);
	}
	reader->recursive = true;
	/* The slash before is read already, so the end of a pattern is whatever follows it. */
	if (!starts && after != '/')
		return emit_star(globs, true) ? 0 : out_of_memory(reader);
	/* `**` after `**` says nothing new. */
	if (reader->after_recursive)
		return 0;
	return emit_components(globs) ? 0 : out_of_memory(reader);
}

static int begin_branch(struct reader *reader)
{
	uint32_t at = (uint32_t)reader->globs->count;

	if (emit(reader->globs, GLOB_SPLIT) == NULL)
		return out_of_memory(reader);
	if (reader->split != NO_STATE)
		reader->globs->states[reader->split].other = at;
	reader->branch = at;
	reader->tokens = false;
	return 0;
}

static int end_branch(struct reader *reader)
{
	struct globs *globs = reader->globs;
	uint32_t jump;

	/* An empty alternative is none, as in globset. */
	if (globs->count == reader->branch + 1) {
		globs->count = reader->branch;
		return 0;
	}
	reader->split = reader->branch;
	jump = (uint32_t)globs->count;
	if (emit(globs, GLOB_SPLIT) == NULL)
		return out_of_memory(reader);
	globs->states[jump].other = reader->jumps;
	reader->jumps = jump;
	return 0;
}

static int open_alternatives(struct reader *reader)
{
	if (reader->alternating)
		return bad(reader, "'{…}' within '{…}' is not supported");
	reader->alternating = true;
	reader->split = reader->jumps = NO_STATE;
	return begin_branch(reader);
}

static int close_alternatives(struct reader *reader)
{
	struct globs *globs = reader->globs;

	if (!reader->alternating)
		return bad(reader, "a '}' has no '{'");
	if (end_branch(reader) != 0)
		return -1;
	if (reader->split != NO_STATE)
		globs->states[reader->split].other = globs->states[reader->split].next;
	while (reader->jumps != NO_STATE) {
		struct glob_state *jump = &globs->states[reader->jumps];
		reader->jumps = jump->other;
		jump->next = jump->other = (uint32_t)globs->count;
	}
	reader->alternating = false;
	return 0;
}

static int read_token(struct reader *reader, int byte)
{
	switch (byte) {
	case '*':
		return read_stars(reader);
	case '?':
		return emit_any(reader->globs, false) ? 0 : out_of_memory(reader);
	case '[':
		return read_class(reader);
	case '{':
		return open_alternatives(reader);
	case '}':
		return close_alternatives(reader);
	case ',':
		if (reader->alternating)
			return end_branch(reader) != 0 ? -1 : begin_branch(reader);
		break;
	case '\\':
		byte = next(reader);
		if (byte == '\0')
			return bad(reader, "nothing follows the last '\\'");
		break;
	}
	return emit_byte(reader->globs, (unsigned)byte) ? 0 : out_of_memory(reader);
}

static int read_pattern(struct reader *reader)
{
	int byte;

	if (strcmp((const char *)reader->text, "**") == 0)
		return emit_star(reader->globs, true) ? 0 : out_of_memory(reader);
	while ((byte = next(reader)) != '\0') {
		bool starts_branch = byte == '{' || (byte == ',' && reader->alternating);
		reader->after_recursive = reader->recursive;
		reader->recursive = false;
		if (read_token(reader, byte) != 0)
			return -1;
		reader->previous = reader->text[reader->at - 1];
		reader->tokens = !starts_branch;
	}
	return reader->alternating ? bad(reader, "a '{' is not closed") : 0;
}

/* ---- a whole pattern ------------------------------------------------------------------ */

static bool is_blank(char byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* gitignore(5): trailing blanks do not count, unless the last one is escaped. */
static size_t trimmed_length(const char *text)
{
	size_t length = strlen(text);

	if (length >= 2 && text[length - 2] == '\\' && text[length - 1] == ' ')
		return length;
	while (length > 0 && is_blank(text[length - 1]))
		length--;
	return length;
}

/* Names that no path relative to the search has. */
static bool has_impossible_component(const char *text)
{
	while (*text != '\0') {
		size_t length = strcspn(text, "/");
		if (length == 0 || (length == 1 && text[0] == '.') ||
		    (length == 2 && text[0] == '.' && text[1] == '.'))
			return true;
		text += length + (text[length] == '/');
	}
	return false;
}

struct shape {
	const char *text; /* as to be matched against whole relative paths */
	bool directories_only;
};

static int shape_pattern(struct globs *globs, const char *written, struct shape *shape,
                         struct failure *failure)
{
	size_t length = trimmed_length(written);
	char *text = arena_copy(globs->arena, written, length);
	bool anchored, recursive;

	if (text == NULL)
		return failure_memory(failure);
	if (length == 0)
		return failure_policy(failure, "A deny glob is empty.");
	if (*text == '!')
		return failure_policy(
			failure, "The glob '%s' starts with '!': a deny glob cannot make exceptions.", written);
	anchored = *text == '/';
	text += anchored;
	length -= anchored;
	shape->directories_only = length > 0 && text[length - 1] == '/';
	if (shape->directories_only)
		text[--length] = '\0';
	if (shape->directories_only && length > 0 && text[length - 1] == '\\')
		text[--length] = '\0';
	if (length == 0 || has_impossible_component(text))
		return failure_policy(failure,
		                      "The glob '%s' can match nothing: paths below the root of the search "
		                      "have no empty, '.' or '..' component.",
		                      written);
	recursive = strncmp(text, "**/", 3) == 0 || strcmp(text, "**") == 0;
	anchored = anchored || strchr(text, '/') != NULL || recursive;
	/* What is in a directory matches `name/` and two stars, the directory does not. */
	shape->text = arena_format(globs->arena, "%s%s%s", anchored ? "" : "**/", text,
	                           length >= 3 && strcmp(text + length - 3, "/**") == 0 ? "/*" : "");
	return shape->text == NULL ? failure_memory(failure) : 0;
}

static bool add_start(struct globs *globs, uint32_t start)
{
	if (globs->start_count == globs->start_room) {
		size_t room = globs->start_room == 0 ? 8 : globs->start_room * 2;
		uint32_t *starts = arena_array(globs->arena, room, sizeof *starts);
		if (starts == NULL)
			return false;
		if (globs->start_count > 0)
			memcpy(starts, globs->starts, globs->start_count * sizeof *starts);
		globs->starts = starts;
		globs->start_room = room;
	}
	globs->starts[globs->start_count++] = start;
	return true;
}

int glob_add(struct globs *globs, const char *written, uint32_t number, struct failure *failure)
{
	struct shape shape = { NULL, false };
	struct reader reader = { .globs = globs,
		                     .failure = failure,
		                     .written = written,
		                     .previous = -1,
		                     .split = NO_STATE,
		                     .jumps = NO_STATE };
	uint32_t start = (uint32_t)globs->count;
	struct glob_state *match;

	if (shape_pattern(globs, written, &shape, failure) != 0)
		return -1;
	reader.text = (const unsigned char *)shape.text;
	if (read_pattern(&reader) != 0)
		return -1;
	match = emit(globs, GLOB_MATCH);
	if (match == NULL || !add_start(globs, start))
		return failure_memory(failure);
	match->pattern = number;
	match->directories_only = shape.directories_only;
	return 0;
}

int glob_check(const char *text, struct failure *failure)
{
	struct arena arena = { 0 };
	struct globs globs = { .arena = &arena };
	int result = glob_add(&globs, text, 0, failure);

	arena_release(&arena);
	return result;
}
