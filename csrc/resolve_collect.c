/* From settled candidates to the sorted, self-contained result. */
#include <stdlib.h>
#include <string.h>

#include "resolve_internal.h"
#include "resolved_table.h"

struct entry {
	const char *path;
	const struct node *node;
};

static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->node->depth != b->node->depth)
		return a->node->depth < b->node->depth ? -1 : 1;
	return strcmp(a->path, b->path);
}

static const char *copy(struct resolver *resolver, const char *text)
{
	return arena_copy(&resolver->out->arena, text, strlen(text));
}

/* The host's path of what a remapped place, or something below one, shows. */
static int fill_source(struct resolver *resolver, struct node *node, struct resolved_rule *rule)
{
	struct node *host = tree_host(resolver->view, node);

	if (host == NULL)
		return -1;
	rule->source = tree_copy_text(host, &resolver->out->arena);
	if (rule->source == NULL)
		return -1;
	if (strcmp(rule->source, rule->path) == 0)
		rule->source = NULL;
	return 0;
}

static int fill_object(struct resolver *resolver, const struct candidate *candidate,
                       struct resolved_rule *rule)
{
	struct node *node = candidate->node;

	rule->object = resolver_object(resolver, node);
	if (candidate->origin == ORIGIN_PRIVATE_TMP)
		rule->object = OBJECT_DIRECTORY;
	if (candidate->flags & CANDIDATE_OWN)
		return 0;
	if (rule->object > OBJECT_PLACEHOLDER && node->known) {
		rule->device = node->device;
		rule->inode = node->inode;
	}
	if (resolver->remap_count == 0 || candidate->access == ACCESS_DENY)
		return 0;
	return fill_source(resolver, node, rule);
}

static int fill_rule(struct resolver *resolver, const struct entry *entry,
                     struct resolved_rule *rule)
{
	const struct candidate *candidate = entry->node->best;

	rule->path = entry->path;
	rule->written = strcmp(candidate->written, entry->path) == 0
	                    ? entry->path
	                    : copy(resolver, candidate->written);
	rule->access = candidate->access;
	rule->origin = candidate->origin;
	rule->index = candidate->index;
	return rule->written == NULL ? -1 : fill_object(resolver, candidate, rule);
}

/* Every node that has a rule, once. */
static int list_entries(struct resolver *resolver, struct entry **entries, size_t *count)
{
	*count = 0;
	*entries = arena_array(&resolver->scratch, resolver->count + 1, sizeof **entries);
	if (*entries == NULL)
		return -1;
	for (size_t i = 0; i < resolver->count; i++) {
		const struct candidate *candidate = resolver->candidates[i];
		struct entry *entry = &(*entries)[*count];
		if (candidate->node->best != candidate)
			continue;
		entry->node = candidate->node;
		entry->path = tree_copy_text(candidate->node, &resolver->out->arena);
		if (entry->path == NULL)
			return -1;
		++*count;
	}
	qsort(*entries, *count, sizeof **entries, compare_entries);
	return 0;
}

static int collect_rules(struct resolver *resolver)
{
	struct resolved *out = resolver->out;
	struct entry *entries;
	size_t count;

	if (list_entries(resolver, &entries, &count) != 0)
		return -1;
	out->rules = arena_array(&out->arena, count + 1, sizeof *out->rules);
	if (out->rules == NULL)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (fill_rule(resolver, &entries[i], &out->rules[i]) != 0)
			return -1;
	out->count = count;
	return 0;
}

/* ---- links ------------------------------------------------------------------------- */

static int compare_links(const void *left, const void *right)
{
	const struct resolved_link *a = left, *b = right;

	return strcmp(a->path, b->path);
}

static size_t count_links(const struct resolver *resolver)
{
	size_t count = 0;

	for (size_t i = 0; i < resolver->count; i++)
		if (!resolver->candidates[i]->dropped)
			count += resolver->candidates[i]->link_count;
	return count;
}

/* A candidate that lost its place to another one leads there too, so its links stay. */
static int collect_links(struct resolver *resolver)
{
	struct resolved *out = resolver->out;
	size_t count = 0;

	out->links = arena_array(&out->arena, count_links(resolver) + 1, sizeof *out->links);
	if (out->links == NULL)
		return -1;
	for (size_t i = 0; i < resolver->count; i++) {
		const struct candidate *candidate = resolver->candidates[i];
		for (size_t l = 0; l < candidate->link_count && !candidate->dropped; l++) {
			struct resolved_link *link = &out->links[count++];
			link->path = tree_copy_text(candidate->links[l], &out->arena);
			link->target = copy(resolver, candidate->links[l]->target);
			if (link->path == NULL || link->target == NULL)
				return -1;
		}
	}
	qsort(out->links, count, sizeof *out->links, compare_links);
	for (size_t i = 0; i < count; i++)
		if (out->link_count == 0 ||
		    strcmp(out->links[out->link_count - 1].path, out->links[i].path) != 0)
			out->links[out->link_count++] = out->links[i];
	return 0;
}

int resolve_collect(struct resolver *resolver)
{
	if (collect_rules(resolver) != 0 || collect_links(resolver) != 0 ||
	    resolved_index(resolver->out) != 0)
		return resolver_memory(resolver);
	return 0;
}
