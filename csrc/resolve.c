/*
 * Resolution, in order: what remaps (it changes what every other path shows), the
 * sandbox's own places, the user's rules, what protects; then links that the command
 * could replace, missing objects, and deny globs, which need the rules to be settled.
 */
#include "resolve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "path.h"
#include "reserved.h"
#include "resolve_internal.h"

/* ---- remapping -------------------------------------------------------------------- */

static int source_failure(struct resolver *resolver, const char *source, int error)
{
	if (error == ENOMEM)
		return resolver_memory(resolver);
	failure_policy(resolver->failure, "The source %s cannot be resolved: %s.", source,
	               strerror(error));
	resolver->failure->errnum = error;
	return -1;
}

static int place_remap(struct resolver *resolver, const struct rule *rule, size_t number)
{
	struct placing placing = { .written = rule->path,
		                       .access = rule->access,
		                       .origin = ORIGIN_RULE,
		                       .index = number,
		                       .flags = CANDIDATE_EXPLICIT };
	const struct candidate *other;
	struct candidate *candidate;
	struct walk source, walk;
	int followed, error = tree_walk(&resolver->host, resolver->host.root, rule->source, &source);

	/* cwd is a path of the view, which is only being made: it is taken as written. */
	if (*rule->path != '/')
		placing.written =
			arena_format(&resolver->scratch, "%s/%s", resolver->context->cwd, rule->path);
	if (placing.written == NULL)
		return resolver_memory(resolver);

	if (error != 0)
		return source_failure(resolver, rule->source, error);
	followed = resolver_walk(resolver, placing.written, 0, &walk);
	if (followed <= 0)
		return followed;
	if (source.node->kind == NODE_MISSING || source.node->kind == NODE_CLOSED)
		return resolver_refuse(resolver, "", "The source %s does not exist.", rule->source);
	other = remap_at(walk.node);
	if (other != NULL && other->source != source.node)
		return resolver_refuse(resolver, "", "Rules %zu and %zu show different sources at %s.",
		                       other->index, number, rule->path);
	candidate = resolver_place(resolver, &walk, &placing);
	if (candidate == NULL)
		return -1;
	candidate->source = source.node;
	candidate->source_link_count = source.link_count;
	candidate->source_links =
		arena_array(&resolver->scratch, source.link_count + 1, sizeof *candidate->source_links);
	if (candidate->source_links == NULL)
		return resolver_memory(resolver);
	memcpy(candidate->source_links, source.links, source.link_count * sizeof *source.links);
	tree_redirect(walk.node, source.node);
	return 0;
}

struct remap {
	const struct rule *rule;
	size_t number;
};

static int compare_remaps(const void *left, const void *right)
{
	const struct remap *a = left, *b = right;
	size_t depth_a = path_depth(a->rule->path), depth_b = path_depth(b->rule->path);

	if (depth_a != depth_b)
		return depth_a < depth_b ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* Broadest first, since a remapped directory decides what the paths below it are. */
int resolve_remaps(struct resolver *resolver)
{
	const struct policy *policy = resolver->policy;
	struct remap *remaps;
	size_t count = 0;

	for (size_t i = 0; i < policy->rule_count; i++)
		count += policy->rules[i].source != NULL;
	if (count == 0)
		return 0;
	remaps = arena_array(&resolver->scratch, count, sizeof *remaps);
	if (remaps == NULL)
		return resolver_memory(resolver);
	count = 0;
	for (size_t i = 0; i < policy->rule_count; i++)
		if (policy->rules[i].source != NULL)
			remaps[count++] = (struct remap){ &policy->rules[i], i + 1 };
	qsort(remaps, count, sizeof *remaps, compare_remaps);
	for (size_t i = 0; i < count; i++)
		if (place_remap(resolver, remaps[i].rule, remaps[i].number) != 0)
			return -1;
	resolver->remaps = resolver->candidates;
	resolver->remap_count = resolver->count;
	return 0;
}

/* ---- beginning ---------------------------------------------------------------------- */

static bool has_remaps(const struct policy *policy)
{
	for (size_t i = 0; i < policy->rule_count; i++)
		if (policy->rules[i].source != NULL)
			return true;
	return false;
}

static int start(struct resolver *resolver)
{
	int error = tree_init(&resolver->host, &resolver->scratch, NULL);

	resolver->view = &resolver->host;
	if (error == 0 && has_remaps(resolver->policy)) {
		error = tree_init(&resolver->overlay, &resolver->scratch, &resolver->host);
		resolver->view = &resolver->overlay;
	}
	resolver->cwd.node = resolver->view->root;
	return error == 0 ? 0 : resolver_memory(resolver);
}

/* cwd is walked after remaps are known, since it is a path of the command's view. */
static int find_cwd(struct resolver *resolver)
{
	struct resolved *out = resolver->out;
	int error =
		tree_walk(resolver->view, resolver->view->root, resolver->context->cwd, &resolver->cwd);

	if (error == ENOMEM)
		return resolver_memory(resolver);
	if (error == ENAMETOOLONG)
		return failure_policy(resolver->failure, "The working directory %.200s… is too long.",
		                      resolver->context->cwd);
	if (error != 0 || resolver->cwd.node->kind != NODE_DIRECTORY)
		return 0;
	out->cwd = tree_copy_text(resolver->cwd.node, &out->arena);
	out->cwd_device = resolver->cwd.node->device;
	out->cwd_inode = resolver->cwd.node->inode;
	return out->cwd == NULL ? resolver_memory(resolver) : 0;
}

static int find_workspace_roots(struct resolver *resolver)
{
	const struct strings *roots = &resolver->policy->workspace_roots;

	resolver->workspace_roots =
		arena_array(&resolver->scratch, roots->count + 1, sizeof *resolver->workspace_roots);
	if (resolver->workspace_roots == NULL)
		return resolver_memory(resolver);
	for (size_t i = 0; i < roots->count; i++) {
		struct walk walk;
		int followed = resolver_walk(resolver, roots->items[i], 0, &walk);
		if (followed < 0)
			return -1;
		if (followed == 0)
			continue;
		if (walk.node->kind == NODE_DIRECTORY && resolver_exists(resolver, walk.node))
			resolver->workspace_roots[resolver->workspace_root_count++] = walk.node;
		else
			resolver_refuse(resolver, "Create it, or leave it out of workspace_roots.",
			                "The workspace root %s %s.", roots->items[i],
			                walk.node->kind == NODE_CLOSED
			                    ? "cannot be looked up: Permission denied"
			                : resolver_exists(resolver, walk.node) ? "is not a directory"
			                                                       : "does not exist");
	}
	return 0;
}

/* ---- the user's path rules ------------------------------------------------------------ */

static int place_rule(struct resolver *resolver, const struct rule *rule, size_t number)
{
	struct placing placing = { .written = rule->path,
		                       .access = rule->access,
		                       .origin = ORIGIN_RULE,
		                       .index = number,
		                       .flags = CANDIDATE_EXPLICIT };
	struct walk walk;
	char text[PATH_MAX];
	int followed = resolver_walk(resolver, rule->path, 0, &walk);

	if (followed <= 0)
		return followed;
	if (reserved_check(rule->path, tree_text(walk.node, text), resolver->failure) != 0)
		return -1;
	return resolver_place(resolver, &walk, &placing) == NULL ? -1 : 0;
}

static int place_rules(struct resolver *resolver)
{
	const struct policy *policy = resolver->policy;
	char text[PATH_MAX];

	for (size_t i = 0; i < resolver->remap_count; i++)
		if (reserved_check(resolver->remaps[i]->written, tree_text(resolver->remaps[i]->node, text),
		                   resolver->failure) != 0)
			return -1;
	for (size_t i = 0; i < policy->rule_count; i++) {
		const struct rule *rule = &policy->rules[i];
		if (rule->form == RULE_PATH && rule->source == NULL &&
		    place_rule(resolver, rule, i + 1) != 0)
			return -1;
	}
	return 0;
}

/* ---- settling -------------------------------------------------------------------------- */

static struct node *replaceable_link(struct resolver *resolver, const struct candidate *candidate)
{
	for (size_t i = 0; i < candidate->link_count; i++)
		if (resolver_can_replace(resolver, candidate->links[i]))
			return candidate->links[i];
	for (size_t i = 0; i < candidate->source_link_count; i++)
		if (resolver_can_replace(resolver, candidate->source_links[i]))
			return candidate->source_links[i];
	return NULL;
}

static bool has_links(const struct candidate *candidate)
{
	return candidate->link_count + candidate->source_link_count > 0;
}

static int drop_replaceable(struct resolver *resolver, bool *changed)
{
	for (size_t i = 0; i < resolver->count; i++) {
		struct candidate *candidate = resolver->candidates[i];
		struct node *link;
		char text[PATH_MAX];
		if (candidate->dropped || !has_links(candidate) ||
		    !(candidate->flags & CANDIDATE_OPTIONAL) ||
		    (link = replaceable_link(resolver, candidate)) == NULL)
			continue;
		candidate_drop(candidate);
		*changed = true;
		if (resolver_note(resolver, candidate->written,
		                  "%s is left out: the command could replace the symbolic link %s.",
		                  candidate->written, tree_text(link, text)) != 0)
			return -1;
	}
	return 0;
}

static void drop_narrowing(struct candidate *const *sorted, size_t count, bool *changed)
{
	for (size_t i = 0; i < count; i++) {
		struct candidate *candidate = sorted[i];
		if (!candidate->dropped && (candidate->flags & CANDIDATE_WIDENS) &&
		    candidate->access == ACCESS_READ && access_above(candidate->node) == ACCESS_WRITE) {
			candidate_drop(candidate);
			*changed = true;
		}
	}
}

/*
 * Leaves out what takes part on conditions only.  What was dropped may have narrowed
 * the place of another one: until nothing changes.
 */
static int drop_conditional(struct resolver *resolver, struct candidate *const *sorted,
                            size_t count)
{
	bool changed;

	do {
		changed = false;
		drop_narrowing(sorted, count, &changed);
		if (drop_replaceable(resolver, &changed) != 0)
			return -1;
	} while (changed);
	return 0;
}

/*
 * A rule that goes through a link which the command can replace would let it choose
 * what its next run is granted, or is not kept from.  One that was left out since
 * nothing is there now would have its turn then.
 */
static int refuse_links(struct resolver *resolver)
{
	for (size_t i = 0; i < resolver->count && !resolver->out->refused; i++) {
		struct candidate *candidate = resolver->candidates[i];
		struct node *link;
		char text[PATH_MAX];
		if (!has_links(candidate) || (candidate->flags & CANDIDATE_OPTIONAL) ||
		    (link = replaceable_link(resolver, candidate)) == NULL)
			continue;
		resolver_refuse(resolver, "Replace the symbolic link by a real directory or file.",
		                "%s goes through the symbolic link %s, which the command could replace.",
		                candidate->written, tree_text(link, text));
	}
	return 0;
}

static int compare_depth(const void *left, const void *right)
{
	const struct candidate *a = *(struct candidate *const *)left;
	const struct candidate *b = *(struct candidate *const *)right;

	if (a->node->depth != b->node->depth)
		return a->node->depth < b->node->depth ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static const char *absence(const struct node *node)
{
	return node->kind == NODE_CLOSED ? "cannot be looked up: Permission denied" : "does not exist";
}

static int settle_missing(struct resolver *resolver, struct candidate *candidate)
{
	if (candidate->access == ACCESS_WRITE) {
		candidate_drop(candidate);
		return resolver_refuse(resolver, "Create it first, or leave the rule out.", "%s %s.",
		                       candidate->written, absence(candidate->node));
	}
	/* A missing object is kept from being made only where something could make it. */
	if (candidate->access == ACCESS_READ && access_above(candidate->node) != ACCESS_WRITE) {
		candidate_drop(candidate);
		return resolver_note(resolver, candidate->written, "%s is left out: it %s.",
		                     candidate->written, absence(candidate->node));
	}
	resolver_check_closed(resolver, candidate);
	return 0;
}

/*
 * What takes part in the end.  From the top down, since what a rule is good for
 * depends on those above it.
 */
static int settle(struct resolver *resolver)
{
	struct candidate **sorted =
		arena_array(&resolver->scratch, resolver->count + 1, sizeof *sorted);

	if (sorted == NULL)
		return resolver_memory(resolver);
	if (resolver->count > 0)
		memcpy(sorted, resolver->candidates, resolver->count * sizeof *sorted);
	qsort(sorted, resolver->count, sizeof *sorted, compare_depth);
	if (drop_conditional(resolver, sorted, resolver->count) != 0)
		return -1;
	for (size_t i = 0; i < resolver->count; i++) {
		struct candidate *candidate = sorted[i];
		if (candidate->dropped || (candidate->flags & CANDIDATE_OWN))
			continue;
		if (!resolver_exists(resolver, candidate->node) && settle_missing(resolver, candidate) != 0)
			return -1;
	}
	return 0;
}

/* ---- all of it -------------------------------------------------------------------------- */

static int resolve_rules(struct resolver *resolver)
{
	if (resolve_remaps(resolver) != 0 || find_cwd(resolver) != 0 ||
	    find_workspace_roots(resolver) != 0)
		return -1;
	if (resolve_system(resolver) != 0 || place_rules(resolver) != 0 ||
	    resolve_specials(resolver) != 0)
		return -1;
	if (settle(resolver) != 0 || resolve_runtime(resolver) != 0 || resolve_metadata(resolver) != 0)
		return -1;
	if (drop_conditional(resolver, NULL, 0) != 0 || refuse_links(resolver) != 0)
		return -1;
	return resolve_globs(resolver);
}

static int resolve_external(struct resolver *resolver)
{
	struct placing everything = { .written = "/",
		                          .access = ACCESS_WRITE,
		                          .origin = ORIGIN_FILESYSTEM };

	if (find_cwd(resolver) != 0 || resolver_place_path(resolver, &everything) != 0)
		return -1;
	return resolve_private_home(resolver);
}

/* A placeholder taken for a directory would be shown, and gone with the run that it belongs to. */
static int cannot_see(struct resolver *resolver)
{
	if (resolver->unseen == ENOMEM)
		return resolver_memory(resolver);
	failure_policy(resolver->failure, "The policy cannot be resolved: %s.",
	               strerror(resolver->unseen));
	resolver->failure->errnum = resolver->unseen;
	return -1;
}

int resolve(const struct policy *policy, const struct resolve_context *context,
            struct resolved *out, struct failure *failure)
{
	struct resolver resolver = {
		.policy = policy, .context = context, .out = out, .failure = failure
	};
	int result = start(&resolver);

	if (result == 0)
		result = policy->filesystem == FILESYSTEM_EXTERNAL ? resolve_external(&resolver)
		                                                   : resolve_rules(&resolver);
	if (result == 0)
		result = resolve_collect(&resolver);
	if (result == 0 && resolver.unseen != 0)
		result = cannot_see(&resolver);
	tree_close(&resolver.overlay);
	tree_close(&resolver.host);
	arena_release(&resolver.scratch);
	return result;
}
