/*
 * Option tables: read raw, so that no metamethod of the caller's runs in between, with
 * unknown names and wrong types raised by name.  Nothing here owns anything.
 */
#ifndef EXECSANDBOX_OPTION_H
#define EXECSANDBOX_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "compat.h"

/* Where options are read from, for messages. */
struct options {
	lua_State *L;
	int index;            /* of the table, absolute */
	const char *function; /* 'policy', 'run', … */
	const char *prefix;   /* "" or what stands before a name: "limits.", "rules[2]." */
};

/* Raises unless every key of the table is one of NAMES (ended by NULL); suggests one. */
void options_check_names(const struct options *options, const char *const *names);

/* Pushes the value of NAME (raw). False where it is nil, and then nothing is pushed. */
bool option_push(const struct options *options, const char *name);

/* Raises `bad option 'NAME' to 'FUNCTION' (EXPECTED expected, got …)` for the value at INDEX. */
int option_type_error(const struct options *options, const char *name, const char *expected,
                      int index);

/* As option_push for a value of the Lua type TYPE; raises for another one. */
bool option_push_type(const struct options *options, const char *name, int type);

/* The boolean NAME, or DEFAULT. */
bool option_boolean(const struct options *options, const char *name, bool otherwise);

/*
 * The length of the list at INDEX, which is the value of NAME; raises unless it is a
 * table whose keys are 1, 2, … n.
 */
size_t option_list_length(const struct options *options, const char *name, int index);

#endif
