/* Questions to a finished resolution. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "path.h"
#include "resolve.h"
#include "resolved_table.h"
#include "tree.h"

/* ---- rules by path ----------------------------------------------------------------- */

/* A hash that grows with the path, so that every ancestor's is met on the way. */
#define HASH_START UINT64_C(0xcbf29ce484222325)

static uint64_t hash_byte(uint64_t hash, char byte)
{
	return (hash ^ (unsigned char)byte) * UINT64_C(0x100000001b3);
}

static size_t slot_of(uint64_t hash, size_t table_size)
{
	return (size_t)(hash ^ hash >> 29) & (table_size - 1);
}

static uint64_t hash_path(const char *path)
{
	uint64_t hash = HASH_START;

	while (*path != '\0')
		hash = hash_byte(hash, *path++);
	return hash;
}

static const struct resolved_rule *rule_of(const struct resolved *resolved, const char *path,
                                           size_t length, uint64_t hash)
{
	size_t slot = slot_of(hash, resolved->table_size);

	for (; resolved->table[slot] != 0; slot = (slot + 1) & (resolved->table_size - 1)) {
		const struct resolved_rule *rule = &resolved->rules[resolved->table[slot] - 1];
		if (strncmp(rule->path, path, length) == 0 && rule->path[length] == '\0')
			return rule;
	}
	return NULL;
}

/* The deepest rule at one of the first LENGTH bytes' prefixes that end at a component. */
static const struct resolved_rule *find(const struct resolved *resolved, const char *path,
                                        size_t length)
{
	uint64_t hash = hash_byte(HASH_START, '/');
	const struct resolved_rule *best = rule_of(resolved, path, 1, hash), *rule;

	for (size_t i = 1; i <= length && length > 1; i++) {
		if (i == length || path[i] == '/')
			if ((rule = rule_of(resolved, path, i, hash)) != NULL)
				best = rule;
		if (i < length)
			hash = hash_byte(hash, path[i]);
	}
	return best;
}

const struct resolved_rule *resolved_find(const struct resolved *resolved, const char *path)
{
	return resolved->table_size == 0 ? NULL : find(resolved, path, strlen(path));
}

const struct resolved_rule *resolved_parent(const struct resolved *resolved, size_t number)
{
	const char *path = resolved->rules[number].path;
	size_t length = (size_t)(strrchr(path, '/') - path);

	if (path[1] == '\0')
		return NULL;
	return find(resolved, path, length == 0 ? 1 : length);
}

/* Whether the rule above shows the same there by itself. */
static bool is_shown_above(const struct resolved *resolved, size_t number)
{
	const struct resolved_rule *rule = &resolved->rules[number];
	const struct resolved_rule *above = resolved_parent(resolved, number);
	size_t length;

	if (above == NULL || above->source == NULL || strcmp(above->source, "/") == 0)
		return false;
	length = strlen(above->source);
	return strncmp(rule->source, above->source, length) == 0 &&
	       strcmp(rule->source + length,
	              rule->path + (above->path[1] == '\0' ? 0 : strlen(above->path))) == 0;
}

static bool shows_something_else(const struct resolved *resolved, size_t number)
{
	const struct resolved_rule *rule = &resolved->rules[number];

	return rule->source != NULL ? !is_shown_above(resolved, number) : rule->origin == ORIGIN_DEV;
}

int resolved_index(struct resolved *resolved)
{
	size_t size = 16, overlays = 0;
	size_t *list;

	while (size < resolved->count * 2)
		size *= 2;
	resolved->table = arena_array(&resolved->arena, size, sizeof *resolved->table);
	list = arena_array(&resolved->arena, resolved->count + 1, sizeof *list);
	if (resolved->table == NULL || list == NULL)
		return -1;
	resolved->table_size = size;
	for (size_t i = 0; i < resolved->count; i++) {
		size_t slot = slot_of(hash_path(resolved->rules[i].path), size);
		while (resolved->table[slot] != 0)
			slot = (slot + 1) & (size - 1);
		resolved->table[slot] = i + 1;
		if (shows_something_else(resolved, i))
			list[overlays++] = i;
	}
	resolved->overlays = list;
	resolved->overlay_count = overlays;
	return 0;
}

void resolved_release(struct resolved *resolved)
{
	arena_release(&resolved->arena);
	memset(resolved, 0, sizeof *resolved);
}

/* ---- paths as somebody writes them ---------------------------------------------------- */

struct asking {
	const struct resolved *resolved;
	struct arena scratch;
	struct tree host;
	struct tree overlay;
	struct tree *view;
	struct walk walk;
};

/* The sandbox's own /dev: nothing of the host's is looked at on the way. */
static int pin_rule(struct asking *asking, const struct resolved_rule *rule)
{
	enum node_kind kind = rule->object == OBJECT_DIRECTORY ? NODE_DIRECTORY : NODE_OTHER;
	struct node *node = asking->view->root;
	const char *path = rule->path, *name;
	size_t length;

	while ((name = path_next(&path, &length)) != NULL) {
		node = tree_child(asking->view, node, name, length);
		if (node == NULL)
			return ENOMEM;
	}
	return tree_pin(asking->view, node, kind);
}

static int show_rule(struct asking *asking, const struct resolved_rule *rule)
{
	struct walk view, source;
	int error;

	if (rule->source == NULL)
		return pin_rule(asking, rule);
	error = tree_walk(asking->view, asking->view->root, rule->path, &view);
	if (error != 0)
		return error;
	error = tree_walk(&asking->host, asking->host.root, rule->source, &source);
	if (error == 0 && asking->view != &asking->host)
		tree_redirect(view.node, source.node);
	return error;
}

static int start(struct asking *asking)
{
	const struct resolved *resolved = asking->resolved;
	int error = tree_init(&asking->host, &asking->scratch, NULL);
	bool remaps = false;

	asking->view = &asking->host;
	for (size_t i = 0; i < resolved->overlay_count; i++)
		remaps = remaps || resolved->rules[resolved->overlays[i]].source != NULL;
	if (error == 0 && remaps) {
		error = tree_init(&asking->overlay, &asking->scratch, &asking->host);
		asking->view = &asking->overlay;
	}
	/* Broadest first, as the rules are. */
	for (size_t i = 0; i < resolved->overlay_count && error == 0; i++)
		error = show_rule(asking, &resolved->rules[resolved->overlays[i]]);
	return error;
}

static bool is_kept_link(const struct resolved *resolved, const char *path)
{
	size_t low = 0, high = resolved->link_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(resolved->links[middle].path, path);
		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* A link that the command cannot see leads nowhere: the first such one, or NULL. */
static const struct node *hidden_link(const struct asking *asking,
                                      const struct resolved_rule **rule)
{
	char text[PATH_MAX];

	for (size_t i = 0; i < asking->walk.link_count; i++) {
		const char *path = tree_text(asking->walk.links[i], text);
		*rule = resolved_find(asking->resolved, path);
		if ((*rule == NULL || (*rule)->access == ACCESS_DENY) &&
		    !is_kept_link(asking->resolved, path))
			return asking->walk.links[i];
	}
	return NULL;
}

static int answer_walk(struct asking *asking, struct arena *arena, struct answer *answer)
{
	const struct node *hidden = hidden_link(asking, &answer->rule);

	answer->path = tree_copy_text(asking->walk.node, arena);
	if (answer->path == NULL)
		return ENOMEM;
	if (hidden != NULL) {
		char text[PATH_MAX];
		answer->reason = arena_format(arena, "the symbolic link %s on the way is not visible",
		                              tree_text(hidden, text));
		return answer->reason == NULL ? ENOMEM : 0;
	}
	answer->rule = resolved_find(asking->resolved, answer->path);
	answer->access = answer->rule == NULL ? ACCESS_DENY : answer->rule->access;
	return 0;
}

/* CWD is followed first, as chdir(2) would have. */
static int walk_from(struct asking *asking, const char *cwd, const char *path)
{
	int error = 0;

	asking->walk.node = asking->view->root;
	if (*path != '/')
		error = tree_walk(asking->view, asking->view->root, cwd, &asking->walk);
	return error != 0 ? error : tree_walk(asking->view, asking->walk.node, path, &asking->walk);
}

static int ask(struct asking *asking, const char *cwd, const char *path, struct arena *arena,
               struct answer *answer)
{
	int error = start(asking);

	if (error == 0)
		error = walk_from(asking, cwd, path);
	if (error == 0)
		return answer_walk(asking, arena, answer);
	if (error != ELOOP)
		return error;
	answer->path = arena_copy(arena, path, strlen(path));
	answer->reason = "too many levels of symbolic links";
	return answer->path == NULL ? ENOMEM : 0;
}

int resolved_ask(const struct resolved *resolved, const char *cwd, const char *path,
                 struct arena *arena, struct answer *answer, struct failure *failure)
{
	struct asking asking = { .resolved = resolved };
	int error;

	memset(answer, 0, sizeof *answer);
	answer->access = ACCESS_DENY;
	error = ask(&asking, cwd, path, arena, answer);
	tree_close(&asking.overlay);
	tree_close(&asking.host);
	arena_release(&asking.scratch);
	if (error == 0)
		return 0;
	if (error == ENOMEM)
		return failure_memory(failure);
	failure_policy(failure, "%.4096s cannot be looked up: %s.", path, strerror(error));
	failure->errnum = error;
	return -1;
}
