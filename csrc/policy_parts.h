/* What the files that make, show and compare policies share. */
#ifndef EXECSANDBOX_POLICY_PARTS_H
#define EXECSANDBOX_POLICY_PARTS_H

#include "compat.h"
#include "failure.h"
#include "policy.h"

/* The words of the interface, by value; each list ends with NULL. policy_words.c */
extern const char *const policy_access_words[];
extern const char *const policy_filesystem_words[];
extern const char *const policy_network_words[];
extern const char *const policy_special_words[];
extern const char *const policy_limit_names[LIMIT_COUNT + 1];

/* What a policy is without any field. */
void policy_set_defaults(struct policy *policy);

/* Deep copy of FROM's fields into TO, whose arena is its own. 0, or -1 without memory. */
int policy_copy(struct policy *to, const struct policy *from);

/*
 * Reads the table at INDEX into POLICY, which has defaults (or what it extends): lists
 * of rules, workspace roots and devices are added to, everything else replaces.  Raises
 * for wrong types and names; 0, or -1 with FAILURE.  FUNCTION is for messages.
 */
int policy_parse(lua_State *L, int index, const char *function, struct policy *policy,
                 struct failure *failure);

/* Pushes a table that policy_parse accepts. */
void policy_push_spec(lua_State *L, const struct policy *policy);

/* Whether both mean the same: order and repetition do not count. -1 without memory. */
int policy_equal(const struct policy *a, const struct policy *b);

#endif
