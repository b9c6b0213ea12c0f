/* Candidates: placing rules on nodes, and which one counts where several meet. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../helpers/claim.h"
#include "resolve_internal.h"

int resolver_memory(struct resolver *resolver)
{
	return failure_memory(resolver->failure);
}

int resolver_note(struct resolver *resolver, const char *path, const char *format, ...)
{
	struct resolved *out = resolver->out;
	char text[PATH_MAX + 256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (out->note_count == resolver->note_room) {
		size_t room = resolver->note_room == 0 ? 8 : resolver->note_room * 2;
		struct resolved_note *notes = arena_array(&out->arena, room, sizeof *notes);
		if (notes == NULL)
			return resolver_memory(resolver);
		if (out->note_count > 0)
			memcpy(notes, out->notes, out->note_count * sizeof *notes);
		out->notes = notes;
		resolver->note_room = room;
	}
	out->notes[out->note_count].path = arena_copy(&out->arena, path, strlen(path));
	out->notes[out->note_count].text = arena_copy(&out->arena, text, strlen(text));
	if (out->notes[out->note_count].path == NULL || out->notes[out->note_count].text == NULL)
		return resolver_memory(resolver);
	out->note_count++;
	return 0;
}

int resolver_refuse(struct resolver *resolver, const char *remedy, const char *format, ...)
{
	struct failure *refusal = &resolver->out->refusal;
	va_list args;

	if (resolver->out->refused)
		return 0;
	resolver->out->refused = true;
	failure_policy(refusal, "%s", "");
	va_start(args, format);
	vsnprintf(refusal->message, sizeof refusal->message, format, args);
	va_end(args);
	snprintf(refusal->remedy, sizeof refusal->remedy, "%s", remedy);
	return 0;
}

/* ---- precedence --------------------------------------------------------------- */

static bool is_automatic(const struct candidate *candidate)
{
	switch (candidate->origin) {
	case ORIGIN_RULE:
	case ORIGIN_SPECIAL:
	case ORIGIN_GLOB:
		return false;
	default:
		return true;
	}
}

/* The sandbox's own places stand whatever a special happens to name. */
static bool is_own_place(const struct candidate *candidate)
{
	return candidate->origin == ORIGIN_DEV || candidate->origin == ORIGIN_PROC;
}

/* Whether A counts rather than B, at the same path. */
static bool beats(const struct candidate *a, const struct candidate *b)
{
	if ((a->origin == ORIGIN_GLOB) != (b->origin == ORIGIN_GLOB))
		return a->origin == ORIGIN_GLOB;
	if (a->origin == ORIGIN_FILESYSTEM || b->origin == ORIGIN_FILESYSTEM)
		return b->origin == ORIGIN_FILESYSTEM && a->origin != ORIGIN_FILESYSTEM;
	if (is_automatic(a) != is_automatic(b)) {
		const struct candidate *user = is_automatic(a) ? b : a;
		const struct candidate *automatic = is_automatic(a) ? a : b;
		if (user->flags & CANDIDATE_EXPLICIT)
			return user == a;
		if (is_own_place(automatic))
			return automatic == a;
	}
	if ((a->flags ^ b->flags) & CANDIDATE_YIELDS) {
		const struct candidate *other = a->flags & CANDIDATE_YIELDS ? b : a;
		if (other->access != ACCESS_DENY)
			return other == a;
	}
	if ((a->access == ACCESS_DENY) != (b->access == ACCESS_DENY))
		return a->access == ACCESS_DENY;
	if (a->access != b->access)
		return a->access > b->access;
	/* Equal in effect: the one written, and written first, is the one to name. */
	if (is_automatic(a) != is_automatic(b))
		return is_automatic(b);
	return a->index < b->index;
}

static void elect(struct node *node)
{
	node->best = NULL;
	for (struct candidate *candidate = node->rules; candidate != NULL; candidate = candidate->next)
		if (!candidate->dropped && (node->best == NULL || beats(candidate, node->best)))
			node->best = candidate;
}

void candidate_drop(struct candidate *candidate)
{
	candidate->dropped = true;
	elect(candidate->node);
}

const struct candidate *rule_at(const struct node *node)
{
	while (node != NULL && node->best == NULL)
		node = node->parent;
	return node == NULL ? NULL : node->best;
}

const struct candidate *rule_above(const struct node *node)
{
	return rule_at(node->parent);
}

enum access access_at(const struct node *node)
{
	const struct candidate *rule = rule_at(node);

	return rule == NULL ? ACCESS_DENY : rule->access;
}

enum access access_above(const struct node *node)
{
	return node->parent == NULL ? ACCESS_DENY : access_at(node->parent);
}

const struct candidate *remap_at(const struct node *node)
{
	for (const struct candidate *rule = node->rules; rule != NULL; rule = rule->next)
		if (rule->source != NULL)
			return rule;
	return NULL;
}

bool node_is_within(const struct node *node, const struct node *ancestor)
{
	while (node != NULL && node->depth > ancestor->depth)
		node = node->parent;
	return node == ancestor;
}

/* ---- placing ------------------------------------------------------------------ */

int resolver_walk(struct resolver *resolver, const char *path, unsigned flags, struct walk *walk)
{
	int error = tree_walk(resolver->view, resolver->cwd.node, path, walk);
	char text[PATH_MAX];

	if (error == 0)
		return 1;
	if (error == ENOMEM)
		return resolver_memory(resolver);
	if (flags & CANDIDATE_OPTIONAL)
		return resolver_note(resolver, path, "%s is left out: %s.", path, strerror(error));
	if (error == ELOOP && walk->link_count > 0) {
		const char *link = tree_text(walk->links[0], text);
		return resolver_refuse(
			resolver, "Replace the symbolic link by a real directory or file.",
			"%s cannot be resolved: the symbolic link %s leads through more than "
			"%d links.",
			path, link, TREE_LINKS_MAX);
	}
	if (error == ENAMETOOLONG)
		return failure_policy(resolver->failure, "The path %.200s… is too long.", path);
	failure_policy(resolver->failure, "%s cannot be resolved: %s.", path,
	               error == ESTALE ? "it changed while it was looked up" : strerror(error));
	resolver->failure->errnum = error;
	return -1;
}

static struct node **copy_links(struct resolver *resolver, const struct walk *walk)
{
	struct node **links = arena_array(&resolver->scratch, walk->link_count + 1, sizeof *links);

	if (links != NULL && walk->link_count > 0)
		memcpy(links, walk->links, walk->link_count * sizeof *links);
	return links;
}

static bool append(struct resolver *resolver, struct candidate *candidate)
{
	if (resolver->count == resolver->room) {
		size_t room = resolver->room == 0 ? 64 : resolver->room * 2;
		struct candidate **list = arena_array(&resolver->scratch, room, sizeof *list);
		if (list == NULL)
			return false;
		if (resolver->count > 0)
			memcpy(list, resolver->candidates, resolver->count * sizeof *list);
		resolver->candidates = list;
		resolver->room = room;
	}
	resolver->candidates[resolver->count++] = candidate;
	return true;
}

struct candidate *resolver_place(struct resolver *resolver, const struct walk *walk,
                                 const struct placing *placing)
{
	struct candidate *candidate = arena_alloc(&resolver->scratch, sizeof *candidate);
	struct node *node = walk->node;

	if (candidate == NULL || !append(resolver, candidate)) {
		resolver_memory(resolver);
		return NULL;
	}
	candidate->node = node;
	candidate->written = placing->written;
	candidate->access = placing->access;
	candidate->origin = placing->origin;
	candidate->index = placing->index;
	candidate->flags = placing->flags;
	candidate->link_count = walk->link_count;
	if (walk->link_count > 0 && (candidate->links = copy_links(resolver, walk)) == NULL) {
		resolver_memory(resolver);
		return NULL;
	}
	candidate->next = node->rules;
	node->rules = candidate;
	if (node->best == NULL || beats(candidate, node->best))
		node->best = candidate;
	for (node = node->parent; node != NULL && !node->rules_below; node = node->parent)
		node->rules_below = true;
	return candidate;
}

int resolver_place_path(struct resolver *resolver, const struct placing *placing)
{
	struct walk walk;
	int followed = resolver_walk(resolver, placing->written, placing->flags, &walk);

	if (followed <= 0)
		return followed;
	return resolver_place(resolver, &walk, placing) == NULL ? -1 : 0;
}

/* ---- what stands there ---------------------------------------------------------- */

/* Where this process lacks the means to find out, nothing is resolved: see `unseen`. */
static bool is_empty(struct resolver *resolver, struct node *node)
{
	int fd = tree_open(resolver->view, node, O_RDONLY | O_DIRECTORY);
	int empty = fd < 0 ? -1 : claim_is_empty(fd);

	if (empty < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		resolver->unseen = errno;
	if (fd >= 0)
		close(fd);
	return empty > 0;
}

static bool is_placeholder(struct resolver *resolver, struct node *node)
{
	struct stat status = { .st_mode = node->mode, .st_uid = node->owner };

	return node->known && claim_is_marked(&status) && is_empty(resolver, node);
}

enum object resolver_object(struct resolver *resolver, struct node *node)
{
	switch (node->kind) {
	case NODE_DIRECTORY:
		return is_placeholder(resolver, node) ? OBJECT_PLACEHOLDER : OBJECT_DIRECTORY;
	case NODE_FILE:
		return OBJECT_FILE;
	case NODE_OTHER:
		return OBJECT_OTHER;
	default:
		return OBJECT_MISSING;
	}
}

bool resolver_exists(struct resolver *resolver, struct node *node)
{
	return resolver_object(resolver, node) > OBJECT_PLACEHOLDER;
}

/*
 * A directory that may not be searched hides what a rule is about.  If the command
 * could open it again, the rule would not hold.
 */
void resolver_check_closed(struct resolver *resolver, const struct candidate *candidate)
{
	struct node *node = candidate->node;
	char text[PATH_MAX];

	if (node->kind != NODE_CLOSED)
		return;
	while (node->parent->kind == NODE_CLOSED)
		node = node->parent;
	node = node->parent;
	if (access_at(node) == ACCESS_WRITE && tree_changeable(resolver->view, node))
		resolver_refuse(resolver, "Make the directory searchable (chmod u+x).",
		                "%s cannot be looked up: the directory %s may not be searched, and the "
		                "command could change that.",
		                candidate->written, tree_text(node, text));
}

/* ---- links that a command could replace ------------------------------------------- */

/* The node of the view that shows host directory NODE where VIEW shows SOURCE, or NULL. */
static struct node *shown_at(struct resolver *resolver, struct node *node,
                             const struct node *source, struct node *view)
{
	struct node *parent;

	if (node == source)
		return view;
	parent = node->parent == NULL ? NULL : shown_at(resolver, node->parent, source, view);
	return parent == NULL ? NULL
	                      : tree_child(resolver->view, parent, node->name, node->name_length);
}

static bool writable_through(struct resolver *resolver, struct node *directory,
                             const struct node *source, struct node *view)
{
	struct node *shown;

	if (!node_is_within(directory, source))
		return false;
	shown = shown_at(resolver, directory, source, view);
	return shown == NULL /* no memory: assume the worst */ || access_at(shown) == ACCESS_WRITE;
}

bool resolver_can_replace(struct resolver *resolver, struct node *link)
{
	struct node *directory = link->parent;
	struct node *host = directory->host;

	if (access_at(directory) == ACCESS_WRITE && tree_changeable(resolver->view, directory))
		return true;
	if (host == NULL || !tree_changeable(&resolver->host, host))
		return false;
	if (writable_through(resolver, host, resolver->host.root, resolver->view->root))
		return true;
	for (size_t i = 0; i < resolver->remap_count; i++)
		if (writable_through(resolver, host, resolver->remaps[i]->source,
		                     resolver->remaps[i]->node))
			return true;
	return false;
}
