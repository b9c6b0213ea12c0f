/*
 * Deny globs: below every workspace root (or cwd without one), one walk for all of
 * them.  Where the rules deny already, nothing is walked: there is nothing to mask.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "glob_walk.h"
#include "path.h"
#include "resolve_internal.h"

/*
 * A place of the walk is the node of the tree for a directory while there may be rules
 * below it, else NULL, and the access that the rules give there.
 */
struct search {
	struct resolver *resolver;
	struct node *root; /* of the search */
	struct node *base; /* what is being walked: root, or a remapped place below it */
};

/* Whether nothing is to be masked in NODE: denied, or not the host's. */
static bool is_covered(const struct candidate *rule)
{
	return rule == NULL || rule->access == ACCESS_DENY || (rule->flags & CANDIDATE_OWN);
}

/* The node of ENTRY if its directory has rules below it, or NULL. */
static struct node *known_child(struct search *search, const struct glob_entry *entry)
{
	struct node *parent = entry->place.pointer;

	if (parent == NULL || !parent->rules_below)
		return NULL;
	return tree_child(search->resolver->view, parent, entry->name, entry->name_length);
}

static bool enter(void *data, const struct glob_entry *entry, struct glob_place *place)
{
	struct search *search = data;
	struct node *node = known_child(search, entry);
	bool covered = entry->place.number != 0 || entry->match != GLOB_NONE;

	if (node != NULL && node->best != NULL) {
		/* A place that shows something else is walked on its own. */
		if (remap_at(node) != NULL)
			return false;
		covered = is_covered(node->best);
	}
	place->pointer = node;
	place->number = covered;
	return !covered || (node != NULL && node->rules_below);
}

static int mask(struct search *search, const struct walk *walk, const char *written,
                uint32_t number)
{
	struct resolver *resolver = search->resolver;
	struct placing placing = {
		.written = written, .access = ACCESS_DENY, .origin = ORIGIN_GLOB, .index = number
	};

	/* One mask is enough, and the pattern written first is the one to name. */
	for (const struct candidate *rule = walk->node->rules; rule != NULL; rule = rule->next)
		if (rule->origin == ORIGIN_GLOB && rule->index <= number)
			return 0;
	return resolver_place(resolver, walk, &placing) == NULL ? -1 : 0;
}

/* The target of a link that matches; the link itself leads nowhere then. */
static int mask_target(struct search *search, const struct glob_entry *entry, const char *written)
{
	struct resolver *resolver = search->resolver;
	char text[PATH_MAX];
	struct walk walk;
	uint32_t number;
	int error;

	error = tree_walk(resolver->view, resolver->view->root, written, &walk);
	if (error == ENOMEM)
		return resolver_memory(resolver);
	/* A loop, or a path too long: nothing can be opened through it. */
	if (error == ELOOP || error == ENAMETOOLONG)
		return 0;
	if (error != 0) {
		failure_policy(resolver->failure,
		               "The symbolic link %s, which a deny glob matches, cannot be "
		               "followed: %s.",
		               written, strerror(error));
		resolver->failure->errnum = error;
		return -1;
	}
	number = walk.node->kind == NODE_DIRECTORY ? entry->directory_match : entry->match;
	if (number == GLOB_NONE || !resolver_exists(resolver, walk.node) ||
	    access_at(walk.node) == ACCESS_DENY || (rule_at(walk.node)->flags & CANDIDATE_OWN))
		return 0;
	if (node_is_within(search->root, walk.node))
		return resolver_refuse(
			resolver, "Remove the link.",
			"A deny glob matches the symbolic link %s, which leads to %s: that would "
			"deny the whole search.",
			written, tree_text(walk.node, text));
	walk.link_count = 0; /* the mask does not depend on the link */
	return mask(search, &walk, written, number);
}

/* The node of a path below BASE, of which nothing is a link. */
static struct node *node_below(struct search *search, const char *path)
{
	struct node *node = search->base;
	const char *name;
	size_t length;

	while (node != NULL && (name = path_next(&path, &length)) != NULL)
		node = tree_child(search->resolver->view, node, name, length);
	return node;
}

static int found(void *data, const struct glob_entry *entry)
{
	struct search *search = data;
	struct resolver *resolver = search->resolver;
	struct node *known = known_child(search, entry);
	char text[PATH_MAX];
	const char *base = tree_text(search->base, text);
	const char *written = arena_format(&resolver->scratch, "%s/%s",
	                                   search->base->parent == NULL ? "" : base, entry->path);
	struct walk walk = { .link_count = 0 };
	int error;

	if (written == NULL)
		return resolver_memory(resolver);
	if (entry->type == GLOB_TYPE_LINK)
		return mask_target(search, entry, written);
	/* Under a mask nothing needs another, except where a rule grants something again. */
	if (entry->place.number != 0 && (known == NULL || known->best == NULL))
		return 0;
	if (known != NULL && known->best != NULL && (known->best->flags & CANDIDATE_OWN))
		return 0;
	if (strlen(written) >= PATH_MAX)
		return failure_policy(resolver->failure,
		                      "A deny glob matches %.200s…, whose path is too long "
		                      "to be masked.",
		                      written);
	walk.node = node_below(search, entry->path);
	if (walk.node == NULL)
		return resolver_memory(resolver);
	error = tree_look(resolver->view, walk.node);
	if (error == ENOMEM)
		return resolver_memory(resolver);
	/* It was removed, or replaced, since it was listed. */
	if (error != 0 || walk.node->kind == NODE_MISSING || walk.node->kind == NODE_LINK)
		return 0;
	return mask(search, &walk, written, entry->match);
}

static int search_directory(struct search *search, const struct globs *globs, const char *prefix,
                            int64_t max_depth)
{
	struct resolver *resolver = search->resolver;
	struct glob_visitor visitor = { search, found, enter };
	bool covered = is_covered(rule_at(search->base));
	struct glob_place place = { search->base, covered };
	char text[PATH_MAX];
	int fd, result;

	if (covered && !search->base->rules_below)
		return 0;
	fd = tree_open(resolver->view, search->base, O_RDONLY | O_DIRECTORY);
	if (fd < 0) {
		failure_policy(resolver->failure,
		               "The deny globs cannot be applied: the directory %s cannot be read: %s.",
		               tree_text(search->base, text), strerror(errno));
		resolver->failure->errnum = errno;
		return -1;
	}
	result = glob_walk(globs, fd, tree_text(search->base, text), prefix, max_depth, place, &visitor,
	                   resolver->failure);
	close(fd);
	return result;
}

/* Whether a pattern matches the remapped place itself; the host may show nothing there. */
static int match_remap(struct search *search, const struct globs *globs, const char *relative)
{
	struct resolver *resolver = search->resolver;
	struct glob_machine *machine = glob_machine_new(globs);
	struct walk walk = { .node = search->base };
	bool directory = search->base->kind == NODE_DIRECTORY;
	uint32_t state, match = GLOB_NONE;
	char text[PATH_MAX];
	const char *written;
	int result = 0;

	if (machine == NULL)
		return resolver_memory(resolver);
	state = glob_machine_start(machine);
	if (state != GLOB_NONE)
		state = glob_machine_read(machine, state, relative, strlen(relative));
	if (state != GLOB_NONE)
		match = glob_machine_match(machine, state, directory);
	else
		result = glob_machine_failure(machine, tree_text(search->root, text), resolver->failure);
	glob_machine_free(machine);
	if (result != 0 || match == GLOB_NONE || is_covered(rule_at(search->base)))
		return result;
	written = tree_copy_text(search->base, &resolver->scratch);
	return written == NULL ? resolver_memory(resolver) : mask(search, &walk, written, match);
}

/* A remapped place below the root of the search, which the walk of the root leaves out. */
static int search_remap(struct search *search, const struct globs *globs,
                        const struct candidate *remap)
{
	int64_t depth = (int64_t)remap->node->depth - (int64_t)search->root->depth;
	int64_t max_depth = search->resolver->policy->glob_scan_max_depth;
	char text[PATH_MAX];
	const char *below;
	char *relative;
	size_t length;

	if (max_depth >= 0 && depth > max_depth)
		return 0;
	search->base = remap->node;
	below = tree_text(remap->node, text) + search->root->path_length + 1;
	length = strlen(below);
	relative = arena_alloc(&search->resolver->scratch, length + 2); /* room for a slash */
	if (relative == NULL)
		return resolver_memory(search->resolver);
	memcpy(relative, below, length);
	if (match_remap(search, globs, relative) != 0)
		return -1;
	if (remap->node->kind != NODE_DIRECTORY || depth == max_depth)
		return 0;
	relative[length] = '/';
	return search_directory(search, globs, relative, max_depth < 0 ? -1 : max_depth - depth);
}

static int search_root(struct resolver *resolver, const struct globs *globs, struct node *root)
{
	struct search search = { .resolver = resolver, .root = root, .base = root };

	if (search_directory(&search, globs, "", resolver->policy->glob_scan_max_depth) != 0)
		return -1;
	for (size_t i = 0; i < resolver->remap_count; i++) {
		const struct candidate *remap = resolver->remaps[i];
		if (remap->node != root && node_is_within(remap->node, root) &&
		    search_remap(&search, globs, remap) != 0)
			return -1;
	}
	return 0;
}

int resolve_globs(struct resolver *resolver)
{
	const struct policy *policy = resolver->policy;
	struct globs globs = { .arena = &resolver->scratch };

	for (size_t i = 0; i < policy->rule_count; i++)
		if (policy->rules[i].form == RULE_GLOB &&
		    glob_add(&globs, policy->rules[i].path, (uint32_t)i + 1, resolver->failure) != 0)
			return -1;
	if (globs.start_count == 0)
		return 0;
	if (policy->workspace_roots.count == 0)
		return resolver->cwd.node->kind == NODE_DIRECTORY
		           ? search_root(resolver, &globs, resolver->cwd.node)
		           : 0;
	for (size_t i = 0; i < resolver->workspace_root_count; i++)
		if (search_root(resolver, &globs, resolver->workspace_roots[i]) != 0)
			return -1;
	return 0;
}
