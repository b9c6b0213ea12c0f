/* Whether two policies mean the same. */
#include <stdlib.h>
#include <string.h>

#include "policy_parts.h"

static int compare_text(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

static int compare_strings(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static int compare_int(int a, int b)
{
	return (a > b) - (a < b);
}

static int compare_rules(const void *left, const void *right)
{
	const struct rule *a = *(const struct rule *const *)left;
	const struct rule *b = *(const struct rule *const *)right;
	int order = compare_int((int)a->form, (int)b->form);

	if (order == 0)
		order = compare_int((int)a->access, (int)b->access);
	if (order == 0)
		order = compare_int((int)a->special, (int)b->special);
	if (order == 0)
		order = compare_text(a->path, b->path);
	if (order == 0)
		order = compare_text(a->source, b->source);
	return order != 0 ? order : compare_text(a->subpath, b->subpath);
}

typedef int compare(const void *left, const void *right);

/* A sorted array of pointers without repetitions; returns how many are left. */
static size_t sort_unique(const void **items, size_t count, compare *order)
{
	size_t kept = 0;

	qsort(items, count, sizeof *items, order);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || order(&items[kept - 1], &items[i]) != 0)
			items[kept++] = items[i];
	return kept;
}

static bool same_items(const void **a, size_t count_a, const void **b, size_t count_b,
                       compare *order)
{
	count_a = sort_unique(a, count_a, order);
	count_b = sort_unique(b, count_b, order);
	if (count_a != count_b)
		return false;
	for (size_t i = 0; i < count_a; i++)
		if (order(&a[i], &b[i]) != 0)
			return false;
	return true;
}

/* 1, 0, or -1 without memory. The items are only read. */
static int same_strings(const struct strings *a, const struct strings *b)
{
	const void **items = calloc(a->count + b->count + 1, sizeof *items);
	int result;

	if (items == NULL)
		return -1;
	for (size_t i = 0; i < a->count; i++)
		items[i] = a->items[i];
	for (size_t i = 0; i < b->count; i++)
		items[a->count + i] = b->items[i];
	result = same_items(items, a->count, items + a->count, b->count, compare_strings);
	free(items);
	return result;
}

static int same_rules(const struct policy *a, const struct policy *b)
{
	const void **items = calloc(a->rule_count + b->rule_count + 1, sizeof *items);
	int result;

	if (items == NULL)
		return -1;
	for (size_t i = 0; i < a->rule_count; i++)
		items[i] = &a->rules[i];
	for (size_t i = 0; i < b->rule_count; i++)
		items[a->rule_count + i] = &b->rules[i];
	result = same_items(items, a->rule_count, items + a->rule_count, b->rule_count, compare_rules);
	free(items);
	return result;
}

/* "none" is what is not said, unless the network is enabled. */
static enum unix_sockets sockets_of(const struct policy *policy)
{
	if (policy->unix_sockets == UNIX_SOCKETS_DEFAULT && policy->network != NETWORK_ENABLED)
		return UNIX_SOCKETS_NONE;
	return policy->unix_sockets;
}

static bool same_scalars(const struct policy *a, const struct policy *b)
{
	return a->filesystem == b->filesystem && a->network == b->network &&
	       a->network_loopback == b->network_loopback &&
	       a->network_filtering == b->network_filtering && sockets_of(a) == sockets_of(b) &&
	       a->isolate_processes == b->isolate_processes && a->mount_proc == b->mount_proc &&
	       a->private_tmp == b->private_tmp && a->private_runtime == b->private_runtime &&
	       a->allow_user_namespaces == b->allow_user_namespaces &&
	       a->glob_scan_max_depth == b->glob_scan_max_depth &&
	       memcmp(a->limits, b->limits, sizeof a->limits) == 0;
}

int policy_equal(const struct policy *a, const struct policy *b)
{
	const struct strings *const lists[][2] = {
		{ &a->workspace_roots, &b->workspace_roots },
		{ &a->protected_metadata, &b->protected_metadata },
		{ &a->devices, &b->devices },
		{ &a->unix_socket_paths, &b->unix_socket_paths },
		{ &a->network_allow, &b->network_allow },
		{ &a->network_deny, &b->network_deny },
	};
	int same = same_scalars(a, b);

	for (size_t i = 0; same == 1 && i < sizeof lists / sizeof *lists; i++)
		same = same_strings(lists[i][0], lists[i][1]);
	return same == 1 ? same_rules(a, b) : same;
}
