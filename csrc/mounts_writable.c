/*
 * Writable mounts, and what keeps a command from displacing or making what is narrowed
 * in them.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../helpers/claim.h"
#include "guard.h"
#include "mounts_internal.h"
#include "path.h"

/* A placeholder of ours, or nothing yet (claim.h has the mark). */
static bool needs_claim(const char *path)
{
	struct stat status;

	if (lstat(path, &status) < 0)
		return errno == ENOENT;
	return claim_is_marked(&status);
}

static int add_unique(struct builder *b, struct strings *list, const char *path)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		if (strcmp(list->items[i], path) == 0)
			return 0;
	if ((list->count & (list->count + 1)) == 0) { /* grow at 0, 1, 3, 7, … */
		const char **items = arena_array(b->arena, list->count * 2 + 1, sizeof *items);
		if (items == NULL)
			return builder_memory(b);
		if (list->count > 0)
			memcpy(items, list->items, list->count * sizeof *items);
		list->items = items;
	}
	/* What is above another one is shorter, and comes before it. */
	for (i = list->count++; i > 0 && strlen(list->items[i - 1]) > strlen(path); i--)
		list->items[i] = list->items[i - 1];
	list->items[i] = path;
	return 0;
}

/* What ABOVE shows at RULE's path is what RULE shows. */
static bool continues(const struct builder *b, const struct resolved_rule *rule,
                      const struct resolved_rule *above)
{
	const char *shown = mounts_rebase(b->arena, rule->path, above->path, rule_source(above));

	return shown != NULL && strcmp(shown, rule_source(rule)) == 0;
}

/*
 * Whether rule NUMBER narrows what ROOT's own mount shows, not one nested in between.  A
 * private home counts: it must stay where the command's environment says.
 */
static bool narrows(const struct builder *b, size_t number, const struct resolved_rule *root)
{
	const struct resolved_rule *rule = &b->resolved->rules[number];
	const struct resolved_rule *holder = resolved_parent(b->resolved, number);

	if ((rule->access == ACCESS_WRITE && rule->origin != ORIGIN_PRIVATE_HOME) ||
	    !is_below(rule->path, root->path))
		return false;
	while (holder != NULL && holder != root) {
		const struct resolved_rule *above =
			resolved_parent(b->resolved, (size_t)(holder - b->resolved->rules));
		if (holder->access != ACCESS_WRITE || is_fresh(holder) || above == NULL ||
		    !continues(b, holder, above))
			return false;
		holder = above;
	}
	return holder == root;
}

/* PATH without its last COUNT components. */
static char *without_last(struct builder *b, const char *path, size_t count)
{
	char *copy = arena_copy(b->arena, path, strlen(path));

	for (; copy != NULL && count > 0; count--) {
		char *slash = strrchr(copy, '/');
		slash[slash == copy] = '\0';
	}
	return copy;
}

/*
 * How RULE, of something missing below ROOT, is kept from being made.  *END is set to the
 * directory whose name must not be moved, where that is not the whole way to it.
 */
static int guard_missing(struct builder *b, const struct resolved_rule *rule,
                         const struct resolved_rule *root, enum guard *guard, const char **end)
{
	char directory[PATH_MAX];
	const char *host = mounts_rebase(b->arena, rule->path, root->path, rule_source(root));

	if (host == NULL)
		return builder_memory(b);
	*guard = guard_for(host, rule_source(root), directory);
	if (*guard != GUARD_FREEZE)
		return 0;
	*end = without_last(b, rule->path, path_depth(host) - path_depth(directory));
	if (*end == NULL)
		return builder_memory(b);
	if ((*end)[1] == '\0')
		return failure_policy(b->failure,
		                      "'%s' cannot be kept from being made: nobody may add to '/' now, "
		                      "but the command could change that, and '/' cannot be covered",
		                      rule->path);
	return add_unique(b, &b->frozen, *end);
}

/*
 * Mount points cannot be renamed, but their parents can: a command that renames the
 * parent of a protected directory could put another one in its place for the host to
 * find.  So every directory between the writable root ROOT and a narrowed path below
 * it becomes a mount point too.
 */
static int collect_guards(struct builder *b, const struct resolved_rule *root)
{
	size_t start = root->path[1] == '\0' ? 0 : strlen(root->path);
	size_t i;

	b->pins = b->frozen = (struct strings){ NULL, 0 };
	for (i = 0; i < b->resolved->count; i++) {
		const struct resolved_rule *rule = &b->resolved->rules[i];
		enum guard guard = GUARD_PLACEHOLDER;
		const char *end = rule->path;
		const char *slash;

		if (!narrows(b, i, root))
			continue;
		if (is_missing(rule) && guard_missing(b, rule, root, &guard, &end) < 0)
			return -1;
		if (guard == GUARD_NONE || guard == GUARD_REFUSE || !is_below(end, root->path))
			continue;
		slash = strchr(end + start + 1, '/');
		for (; slash != NULL; slash = strchr(slash + 1, '/')) {
			char *path = arena_copy(b->arena, end, (size_t)(slash - end));
			if (path == NULL)
				return builder_memory(b);
			if (add_unique(b, &b->pins, path) < 0)
				return -1;
		}
	}
	return 0;
}

static int add_pin(struct builder *b, const struct resolved_rule *root, const char *path)
{
	struct mount *mount = builder_add(b, MOUNT_PIN, path);
	struct stat status;

	if (mount == NULL)
		return -1;
	mount->source = mounts_rebase(b->arena, path, root->path, rule_source(root));
	if (mount->source == NULL)
		return builder_memory(b);
	mount->checked = true;
	if (needs_claim(mount->source))
		return builder_claim(b, mount, mount->source);
	if (lstat(mount->source, &status) == 0) {
		mount->device = status.st_dev;
		mount->inode = status.st_ino;
	}
	return 0;
}

/* Binds what the host has at HOST to PATH once more. */
static int add_again(struct builder *b, enum mount_kind kind, const char *path, const char *host)
{
	struct resolved_rule again = { .path = path, .source = host, .object = OBJECT_FILE };
	struct stat status;

	if (host == NULL)
		return builder_memory(b);
	if (lstat(host, &status) < 0)
		return failure_policy(b->failure, "'%s' changed while it was looked at", host);
	if (S_ISDIR(status.st_mode))
		again.object = OBJECT_DIRECTORY;
	again.device = status.st_dev;
	again.inode = status.st_ino;
	return builder_bind(b, kind, &again) == NULL ? -1 : 0;
}

/* A rule has something else to say about just PATH than what the mount around it shows. */
static bool is_spoken_for(const struct builder *b, const char *path)
{
	const struct resolved_rule *rule = resolved_find(b->resolved, path);
	const struct resolved_rule *above;

	if (rule == NULL || strcmp(rule->path, path) != 0)
		return false;
	above = resolved_parent(b->resolved, (size_t)(rule - b->resolved->rules));
	return rule->access != ACCESS_WRITE || above == NULL || !continues(b, rule, above);
}

/*
 * Nothing can be added to DIRECTORY, neither now nor by the command, which could change
 * its mode.  What is in it stays as writable as it is.
 */
static int freeze(struct builder *b, const struct resolved_rule *root, const char *directory)
{
	const char *host = mounts_rebase(b->arena, directory, root->path, rule_source(root));
	struct strings names = { NULL, 0 };
	size_t i;

	if (add_again(b, MOUNT_BIND_READ, directory, host) < 0 ||
	    guard_list(host, b->arena, &names, b->failure) < 0)
		return -1;
	for (i = 0; i < names.count; i++) {
		const char *path = arena_format(b->arena, "%s/%s", directory, names.items[i]);

		if (path == NULL)
			return builder_memory(b);
		if (is_spoken_for(b, path))
			continue;
		if (add_again(b, MOUNT_BIND_WRITE, path,
		              arena_format(b->arena, "%s/%s", host, names.items[i])) < 0)
			return -1;
	}
	return 0;
}

static int freeze_all(struct builder *b, const struct resolved_rule *root)
{
	size_t i;

	for (i = 0; i < b->frozen.count; i++)
		if (freeze(b, root, b->frozen.items[i]) < 0)
			return -1;
	return 0;
}

static int add_pins(struct builder *b, const struct resolved_rule *rule)
{
	size_t i;

	for (i = 0; i < b->pins.count; i++)
		if (add_pin(b, rule, b->pins.items[i]) < 0)
			return -1;
	return 0;
}

/*
 * A sandbox inside this one can bind the root elsewhere and let the rest go, and with it
 * all that lay beneath: there the pins go on top, where they come along (mount_namespaces(7):
 * mounts of a more privileged namespace are locked together), and moves across them fail.
 */
static int add_writable_below_pins(struct builder *b, const struct resolved_rule *rule)
{
	if (builder_bind(b, MOUNT_BIND_WRITE, rule) == NULL)
		return -1;
	b->top = b->mounts->count - 1;
	return add_pins(b, rule) < 0 ? -1 : freeze_all(b, rule);
}

/*
 * Pins go beneath the bind that the command sees: a directory is then a mount point,
 * so that renaming it fails, and yet one mount shows all of the root, so that moves
 * and hard links across directories work.
 */
int builder_writable(struct builder *b, const struct resolved_rule *rule, bool beneath_already)
{
	if (collect_guards(b, rule) < 0)
		return -1;
	if (b->policy->allow_user_namespaces)
		return add_writable_below_pins(b, rule);
	if (b->pins.count > 0 && !beneath_already) {
		struct mount *beneath = builder_bind(b, MOUNT_BIND_WRITE, rule);
		if (beneath == NULL)
			return -1;
		beneath->checked = false; /* the command never sees it */
	}
	if (add_pins(b, rule) < 0 || builder_bind(b, MOUNT_BIND_WRITE, rule) == NULL)
		return -1;
	b->top = b->mounts->count - 1;
	return freeze_all(b, rule);
}

static size_t top_length(const char *path)
{
	const char *slash = strchr(path + 1, '/');

	return slash == NULL ? strlen(path) : (size_t)(slash - path);
}

/*
 * Nothing stays beneath the root directory's own mount: there the pins of each
 * directory at the top go beneath a second bind of that directory.
 */
int builder_writable_root(struct builder *b, const struct resolved_rule *rule)
{
	size_t i, j;

	if (builder_bind(b, MOUNT_BIND_WRITE, rule) == NULL || collect_guards(b, rule) < 0)
		return -1;
	if (b->policy->allow_user_namespaces)
		return add_pins(b, rule) < 0 ? -1 : freeze_all(b, rule);
	for (i = 0; i < b->pins.count; i++) {
		const char *top = b->pins.items[i];

		if (top_length(top) != strlen(top))
			continue;
		for (j = 0; j < b->pins.count; j++)
			if (is_below(b->pins.items[j], top) && add_pin(b, rule, b->pins.items[j]) < 0)
				return -1;
		if (add_pin(b, rule, top) < 0)
			return -1;
	}
	return freeze_all(b, rule);
}
