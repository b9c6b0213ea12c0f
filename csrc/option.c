#include "option.h"

#include <string.h>

enum { NAME_BYTES = 48 };

/*
 * How many insertions, removals, replacements and swaps of neighbours lead from A to B
 * (the restricted Damerau-Levenshtein distance).
 */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][NAME_BYTES + 1];
	size_t length_a = strlen(a), length_b = strlen(b);

	if (length_a > NAME_BYTES || length_b > NAME_BYTES)
		return NAME_BYTES;
	for (size_t j = 0; j <= length_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= length_a; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
		row[0] = i;
		for (size_t j = 1; j <= length_b; j++) {
			size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
			if (above[j] + 1 < best)
				best = above[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			row[j] = best;
		}
	}
	return rows[length_a % 3][length_b];
}

static const char *suggestion(const char *name, const char *const *names)
{
	size_t best = strlen(name) / 3 + 2; /* beyond that, it is another word */
	const char *found = NULL;

	for (; *names != NULL; names++) {
		size_t steps = distance(name, *names);
		if (steps < best) {
			best = steps;
			found = *names;
		}
	}
	return found;
}

static int unknown(const struct options *options, const char *name, const char *const *names)
{
	const char *better = suggestion(name, names);

	if (better != NULL)
		return luaL_error(options->L, "bad option '%s%s' to '%s' (did you mean '%s'?)",
		                  options->prefix, name, options->function, better);
	return luaL_error(options->L, "bad option '%s%s' to '%s' (no such option)", options->prefix,
	                  name, options->function);
}

static bool is_name(const char *name, const char *const *names)
{
	for (; *names != NULL; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

void options_check_names(const struct options *options, const char *const *names)
{
	lua_State *L = options->L;

	luaL_checkstack(L, 4, "options");
	lua_pushnil(L);
	while (lua_next(L, options->index)) {
		size_t length;
		const char *name;
		if (lua_type(L, -2) != LUA_TSTRING)
			luaL_error(L, "bad option '%s?' to '%s' (names expected, got a key of type %s)",
			           options->prefix, options->function, luaL_typename(L, -2));
		name = lua_tolstring(L, -2, &length);
		if (strlen(name) != length || !is_name(name, names))
			unknown(options, name, names);
		lua_pop(L, 1);
	}
}

bool option_push(const struct options *options, const char *name)
{
	luaL_checkstack(options->L, 4, "options");
	lua_pushstring(options->L, name);
	lua_rawget(options->L, options->index);
	if (!lua_isnil(options->L, -1))
		return true;
	lua_pop(options->L, 1);
	return false;
}

int option_type_error(const struct options *options, const char *name, const char *expected,
                      int index)
{
	return luaL_error(options->L, "bad option '%s%s' to '%s' (%s expected, got %s)",
	                  options->prefix, name, options->function, expected,
	                  luaL_typename(options->L, index));
}

bool option_push_type(const struct options *options, const char *name, int type)
{
	if (!option_push(options, name))
		return false;
	if (lua_type(options->L, -1) != type)
		option_type_error(options, name, lua_typename(options->L, type), -1);
	return true;
}

bool option_boolean(const struct options *options, const char *name, bool otherwise)
{
	bool value;

	if (!option_push_type(options, name, LUA_TBOOLEAN))
		return otherwise;
	value = lua_toboolean(options->L, -1);
	lua_pop(options->L, 1);
	return value;
}

static bool is_index(lua_State *L, int index, size_t length)
{
	double value;

	if (lua_type(L, index) != LUA_TNUMBER)
		return false;
	value = lua_tonumber(L, index);
	return value >= 1 && value <= (double)length && (double)(size_t)value == value;
}

size_t option_list_length(const struct options *options, const char *name, int index)
{
	lua_State *L = options->L;
	size_t length, count = 0;

	luaL_checkstack(L, 4, "options");
	index = lua_absindex(L, index);
	if (lua_type(L, index) != LUA_TTABLE)
		option_type_error(options, name, "list", index);
	length = lua_rawlen(L, index);
	lua_pushnil(L);
	while (lua_next(L, index)) {
		if (!is_index(L, -2, length))
			luaL_error(L, "bad option '%s%s' to '%s' (list expected, got a table with other keys)",
			           options->prefix, name, options->function);
		count++;
		lua_pop(L, 1);
	}
	if (count != length)
		luaL_error(L, "bad option '%s%s' to '%s' (list expected, got one with holes)",
		           options->prefix, name, options->function);
	return length;
}
