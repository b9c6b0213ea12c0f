/*
 * Protected metadata: names at the top of every workspace root that stay read-only,
 * and what a `.git` that is a file points to (gitrepository-layout(5)).
 *
 * Whoever can write a repository's config or hooks runs commands as whoever uses git
 * there next, outside every sandbox.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "path.h"
#include "resolve_internal.h"

enum { POINTER_BYTES = 64 * 1024 };

/* ---- pointers ------------------------------------------------------------------------ */

/* Reads a small regular file as text in the scratch arena. *TEXT is NULL where it is none. */
static int read_small(struct resolver *resolver, struct node *node, char **text)
{
	struct stat status;
	size_t length = 0;
	char *buffer;
	int fd;

	*text = NULL;
	if (node->kind != NODE_FILE)
		return 0;
	fd = tree_open(resolver->view, node, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return 0;
	buffer = arena_alloc(&resolver->scratch, POINTER_BYTES + 1);
	if (buffer != NULL && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		ssize_t count;
		while (length < POINTER_BYTES &&
		       (count = read(fd, buffer + length, POINTER_BYTES - length)) != 0) {
			if (count < 0 && errno != EINTR)
				break;
			length += count > 0 ? (size_t)count : 0;
		}
		*text = buffer;
	}
	close(fd);
	return buffer == NULL ? resolver_memory(resolver) : 0;
}

/* The path in TEXT after PREFIX, without the line end; NULL where there is none. */
static const char *pointer_in(char *text, const char *prefix)
{
	size_t length = strlen(prefix);
	char *path = text, *end;

	if (text == NULL || strncmp(text, prefix, length) != 0)
		return NULL;
	path += length;
	while (*path == ' ')
		path++;
	/* git takes everything up to the trailing line ends; a path may contain one. */
	end = path + strlen(path);
	while (end > path && (end[-1] == '\n' || end[-1] == '\r'))
		*--end = '\0';
	return *path == '\0' ? NULL : path;
}

static bool is_workspace_root(const struct resolver *resolver, const struct node *node)
{
	for (size_t i = 0; i < resolver->workspace_root_count; i++)
		if (resolver->workspace_roots[i] == node)
			return true;
	return false;
}

static bool is_explicit(const struct node *node)
{
	for (const struct candidate *rule = node->rules; rule != NULL; rule = rule->next)
		if (!rule->dropped && (rule->flags & CANDIDATE_EXPLICIT))
			return true;
	return false;
}

/* Whether a path rule names NODE, or an ancestor that is neither a workspace root nor "/". */
static bool is_spoken_for(const struct resolver *resolver, const struct node *node)
{
	for (; node->parent != NULL; node = node->parent)
		if (is_explicit(node) && !is_workspace_root(resolver, node))
			return true;
	return false;
}

static int place_protection(struct resolver *resolver, const struct walk *walk,
                            const struct placing *placing)
{
	const struct candidate *candidate = resolver_place(resolver, walk, placing);

	if (candidate != NULL)
		resolver_check_closed(resolver, candidate);
	return candidate == NULL ? -1 : 0;
}

/*
 * Protects where a pointer in directory FROM leads; *TARGET is that place, or NULL
 * where it leads nowhere that can be followed.
 */
static int protect_target(struct resolver *resolver, struct node *root, struct node *from,
                          const char *pointer, struct node **target)
{
	char text[PATH_MAX];
	const char *directory = tree_text(from, text);
	struct placing placing = { .access = ACCESS_READ, .origin = ORIGIN_PROTECTED };
	struct walk walk;
	int followed;

	*target = NULL;
	placing.written = *pointer == '/'
	                      ? pointer
	                      : arena_format(&resolver->scratch, "%s/%s",
	                                     from->parent == NULL ? "" : directory, pointer);
	if (placing.written == NULL)
		return resolver_memory(resolver);
	/* No such path can exist: the pointer is broken. */
	if (strlen(placing.written) >= PATH_MAX)
		return 0;
	followed = resolver_walk(resolver, placing.written, 0, &walk);
	if (followed <= 0)
		return followed;
	*target = walk.node;
	if (access_at(walk.node) != ACCESS_WRITE || is_spoken_for(resolver, walk.node))
		return 0;
	if (node_is_within(root, walk.node))
		return resolver_refuse(resolver, "Mend the .git file.",
		                       "The repository that %s/.git points to, %s, contains the workspace "
		                       "root.",
		                       strcmp(directory, "/") == 0 ? "" : directory, placing.written);
	return place_protection(resolver, &walk, &placing);
}

static int protect_common_directory(struct resolver *resolver, struct node *root,
                                    struct node *repository)
{
	struct node *file = tree_child(resolver->view, repository, "commondir", strlen("commondir"));
	struct node *target;
	const char *pointer;
	char *text = NULL;
	int error;

	if (file == NULL)
		return resolver_memory(resolver);
	error = tree_look(resolver->view, file);
	if (error == ENOMEM)
		return resolver_memory(resolver);
	if (error != 0)
		return 0;
	if (read_small(resolver, file, &text) != 0)
		return -1;
	pointer = pointer_in(text, "");
	return pointer == NULL ? 0 : protect_target(resolver, root, repository, pointer, &target);
}

/* GIT is what stands at ROOT/.git. */
static int protect_repository(struct resolver *resolver, struct node *root, struct node *git)
{
	struct node *repository = git;
	const char *pointer;
	char *text;

	if (git->kind == NODE_FILE) {
		if (read_small(resolver, git, &text) != 0)
			return -1;
		pointer = pointer_in(text, "gitdir:");
		if (pointer == NULL)
			return 0;
		if (protect_target(resolver, root, git->parent, pointer, &repository) != 0)
			return -1;
	}
	if (repository == NULL || repository->kind != NODE_DIRECTORY)
		return 0;
	return protect_common_directory(resolver, root, repository);
}

/* ---- names ------------------------------------------------------------------------------ */

static int protect_name(struct resolver *resolver, struct node *root, const char *name)
{
	char text[PATH_MAX];
	struct placing placing = { .access = ACCESS_READ, .origin = ORIGIN_PROTECTED };
	struct node *literal = tree_child(resolver->view, root, name, strlen(name));
	struct walk walk;
	int followed;

	if (literal == NULL)
		return resolver_memory(resolver);
	placing.written = arena_format(&resolver->scratch, "%s/%s",
	                               root->parent == NULL ? "" : tree_text(root, text), name);
	if (placing.written == NULL)
		return resolver_memory(resolver);
	followed = resolver_walk(resolver, placing.written, 0, &walk);
	if (followed <= 0)
		return followed;
	/* Whatever it leads to, even where nothing there is writable. */
	if (literal->kind == NODE_LINK && resolver_can_replace(resolver, literal))
		return resolver_refuse(resolver,
		                       "Replace the symbolic link by a real directory, or leave its name "
		                       "out of protected_metadata.",
		                       "%s is to be protected, but is a symbolic link (to %s) which the "
		                       "command could replace.",
		                       placing.written, literal->target);
	if (access_at(walk.node) == ACCESS_WRITE && !is_explicit(walk.node) &&
	    place_protection(resolver, &walk, &placing) != 0)
		return -1;
	return strcmp(name, ".git") == 0 ? protect_repository(resolver, root, walk.node) : 0;
}

int resolve_metadata(struct resolver *resolver)
{
	const struct strings *names = &resolver->policy->protected_metadata;

	for (size_t i = 0; i < resolver->workspace_root_count; i++)
		for (size_t n = 0; n < names->count; n++)
			if (protect_name(resolver, resolver->workspace_roots[i], names->items[n]) != 0)
				return -1;
	return 0;
}
