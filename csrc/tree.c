#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "path.h"

enum { FIRST_BUCKETS = 256 };

/* ---- opening without following links ------------------------------------ */

static int open_by_component(int directory, const char *path, int flags)
{
	int fd = openat(directory, *path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *name;
	size_t length;

	while (fd >= 0 && (name = path_next(&path, &length)) != NULL) {
		char text[NAME_MAX + 1];
		bool last = path[strspn(path, "/")] == '\0';
		int next = -1, saved;

		if (length <= NAME_MAX) {
			memcpy(text, name, length);
			text[length] = '\0';
			next =
				openat(fd, text,
			           last ? flags | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		} else {
			errno = ENAMETOOLONG;
		}
		saved = errno;
		close(fd);
		errno = saved;
		fd = next;
	}
	return fd;
}

int tree_open_plain(int directory, const char *path, int flags, bool *no_openat2)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_NO_SYMLINKS,
	};

	if (!*no_openat2) {
		long fd = syscall(SYS_openat2, directory, path, &how, sizeof how);
		if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
			return (int)fd;
		/* EPERM may also be a container's filter that does not know the call. */
		if (errno == ENOSYS)
			*no_openat2 = true;
	}
	/* "/" and "." have no component to open: open_by_component would ignore FLAGS. */
	if (strcmp(path, "/") == 0 || strcmp(path, ".") == 0)
		return openat(directory, path, flags | O_NOFOLLOW | O_CLOEXEC);
	return open_by_component(directory, path, flags | O_CLOEXEC);
}

/* ---- nodes ---------------------------------------------------------------- */

static uint32_t hash_name(const struct node *parent, const char *name, size_t length)
{
	uint32_t hash = parent->hash ^ 0x9e3779b9u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619u;
	return hash ^ hash >> 15;
}

static bool grow(struct tree *tree)
{
	size_t count = tree->bucket_count == 0 ? FIRST_BUCKETS : tree->bucket_count * 4;
	struct node **buckets = arena_array(tree->arena, count, sizeof *buckets);

	if (buckets == NULL)
		return false;
	for (size_t i = 0; i < tree->bucket_count; i++) {
		struct node *node = tree->buckets[i];
		while (node != NULL) {
			struct node *next = node->chain;
			node->chain = buckets[node->hash % count];
			buckets[node->hash % count] = node;
			node = next;
		}
	}
	tree->buckets = buckets;
	tree->bucket_count = count;
	return true;
}

int tree_init(struct tree *tree, struct arena *arena, struct tree *host)
{
	memset(tree, 0, sizeof *tree);
	tree->arena = arena;
	tree->host = host;
	tree->root = arena_alloc(arena, sizeof *tree->root);
	if (tree->root == NULL || !grow(tree))
		return ENOMEM;
	tree->root->name = "";
	tree->root->host = host == NULL ? tree->root : host->root;
	tree->root->kind = NODE_DIRECTORY; /* what else it is, is looked up when somebody asks */
	return 0;
}

void tree_close(struct tree *tree)
{
	for (size_t i = 0; i < TREE_OPEN_MAX; i++) {
		if (tree->open[i].node != NULL)
			close(tree->open[i].fd);
		tree->open[i].node = NULL;
	}
}

static struct node *find_child(const struct tree *tree, const struct node *parent, const char *name,
                               size_t length, uint32_t hash)
{
	struct node *node = tree->buckets[hash % tree->bucket_count];

	while (node != NULL && (node->hash != hash || node->parent != parent ||
	                        node->name_length != length || memcmp(node->name, name, length) != 0))
		node = node->chain;
	return node;
}

struct node *tree_child(struct tree *tree, struct node *parent, const char *name, size_t length)
{
	uint32_t hash = hash_name(parent, name, length);
	struct node *node = find_child(tree, parent, name, length, hash);

	if (node != NULL)
		return node;
	if (tree->node_count >= tree->bucket_count && !grow(tree))
		return NULL;
	node = arena_alloc(tree->arena, sizeof *node + length + 1);
	if (node == NULL)
		return NULL;
	node->name = memcpy(node + 1, name, length);
	node->parent = parent;
	node->hash = hash;
	node->depth = parent->depth + 1;
	node->name_length = (uint32_t)length;
	node->path_length = parent->path_length + 1 + (uint32_t)length;
	if (tree->host == NULL)
		node->host = node;
	node->chain = tree->buckets[hash % tree->bucket_count];
	tree->buckets[hash % tree->bucket_count] = node;
	tree->node_count++;
	return node;
}

static void write_text(const struct node *node, char *buffer)
{
	size_t end = node->path_length;

	if (end == 0)
		buffer[end++] = '/';
	buffer[end] = '\0';
	for (; node->parent != NULL; node = node->parent) {
		end = node->path_length - node->name_length;
		memcpy(buffer + end, node->name, node->name_length);
		buffer[end - 1] = '/';
	}
}

const char *tree_text(const struct node *node, char *buffer)
{
	if (node->path_length >= PATH_MAX) /* tree_walk lets none through */
		return "";
	write_text(node, buffer);
	return buffer;
}

const char *tree_copy_text(const struct node *node, struct arena *arena)
{
	char *text = arena_alloc(arena, (size_t)node->path_length + 2);

	if (text != NULL)
		write_text(node, text);
	return text;
}

/* ---- lookups ---------------------------------------------------------------- */

int tree_open(struct tree *tree, struct node *node, int flags)
{
	char text[PATH_MAX];

	if (tree->host != NULL)
		return tree_open(tree->host, node->host, flags);
	return tree_open_plain(AT_FDCWD, tree_text(node, text), flags, &tree->no_openat2);
}

/* A descriptor of directory NODE, kept until its slot is needed; -1 with errno. */
static int directory_fd(struct tree *tree, struct node *node)
{
	struct open_directory *slot = &tree->open[node->hash % TREE_OPEN_MAX];
	int fd;

	if (slot->node == node)
		return slot->fd;
	fd = tree_open(tree, node, O_PATH | O_DIRECTORY);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
		tree_close(tree);
		fd = tree_open(tree, node, O_PATH | O_DIRECTORY);
	}
	if (fd < 0)
		return -1;
	if (slot->node != NULL)
		close(slot->fd);
	slot->fd = fd;
	slot->node = node;
	/* No link was on the way, so that everything above is a directory of that name. */
	for (; node != NULL && node->kind == NODE_UNKNOWN; node = node->parent)
		node->kind = NODE_DIRECTORY;
	return fd;
}

static int read_target(struct tree *tree, struct node *node, int fd)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(fd, node->name, text, sizeof text);

	if (length < 0)
		return errno == EINVAL || errno == ENOENT ? ESTALE : errno;
	if (length == 0 || length == (ssize_t)sizeof text)
		return ENAMETOOLONG;
	node->target = arena_copy(tree->arena, text, (size_t)length);
	return node->target == NULL ? ENOMEM : 0;
}

static void fill(struct node *node, const struct stat *status)
{
	node->known = true;
	node->device = status->st_dev;
	node->inode = status->st_ino;
	node->mode = status->st_mode;
	node->owner = status->st_uid;
	node->kind = S_ISDIR(status->st_mode)   ? NODE_DIRECTORY
	             : S_ISREG(status->st_mode) ? NODE_FILE
	             : S_ISLNK(status->st_mode) ? NODE_LINK
	                                        : NODE_OTHER;
}

/* Asks the filesystem; the parent is a directory. */
static int look_on_host(struct tree *tree, struct node *node)
{
	struct stat status;
	int fd = -1, result;

	if (node->parent == NULL)
		result = stat("/", &status);
	else if ((fd = directory_fd(tree, node->parent)) < 0)
		result = -1;
	else
		result = fstatat(fd, node->name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT);
	if (result == 0) {
		fill(node, &status);
		return node->kind == NODE_LINK ? read_target(tree, node, fd) : 0;
	}
	switch (errno) {
	case EACCES:
		node->kind = NODE_CLOSED;
		return 0;
	case ENOENT:
		node->kind = NODE_MISSING;
		return 0;
	case ELOOP:
	case ENOTDIR:
		return ESTALE; /* the parent was a directory a moment ago */
	default:
		return errno;
	}
}

/* What a name of a view shows is its parent's host's child of that name, unless redirected. */
static int find_host(struct tree *tree, struct node *node)
{
	int error;

	if (node->host != NULL || node->parent == NULL)
		return 0; /* a root has one from the beginning */
	error = find_host(tree, node->parent);
	if (error != 0)
		return error;
	node->host = tree_child(tree->host, node->parent->host, node->name, node->name_length);
	if (node->host == NULL)
		return ENOMEM;
	return node->host->path_length >= PATH_MAX ? ENAMETOOLONG : 0;
}

struct node *tree_host(struct tree *tree, struct node *node)
{
	return find_host(tree, node) == 0 ? node->host : NULL;
}

static void show_host(struct node *node)
{
	const struct node *host = node->host;

	node->kind = host->kind;
	node->target = host->target;
	node->known = host->known;
	node->device = host->device;
	node->inode = host->inode;
	node->mode = host->mode;
	node->owner = host->owner;
}

static int look_in_view(struct tree *tree, struct node *node)
{
	int error = find_host(tree, node);

	if (error == 0)
		error = tree_look(tree->host, node->host);
	if (error == 0)
		show_host(node);
	return error;
}

int tree_look(struct tree *tree, struct node *node)
{
	if (node->known || node->pinned || node->kind == NODE_MISSING || node->kind == NODE_CLOSED)
		return 0;
	if (node->parent != NULL) {
		int error = node->parent->kind == NODE_UNKNOWN ? tree_look(tree, node->parent) : 0;
		if (error != 0)
			return error;
		if (node->parent->kind != NODE_DIRECTORY) {
			node->kind = node->parent->kind == NODE_CLOSED ? NODE_CLOSED : NODE_MISSING;
			return 0;
		}
	}
	return tree->host == NULL ? look_on_host(tree, node) : look_in_view(tree, node);
}

void tree_redirect(struct node *node, struct node *host)
{
	node->host = host;
	show_host(node);
	node->pinned = true;
}

int tree_pin(struct tree *tree, struct node *node, enum node_kind kind)
{
	node->pinned = true;
	node->known = false;
	node->kind = kind;
	node->target = NULL;
	node->device = 0;
	node->inode = 0;
	return find_host(tree, node);
}

bool tree_changeable(struct tree *tree, struct node *node)
{
	char text[PATH_MAX];

	if (tree->host != NULL)
		return node->host != NULL && tree_changeable(tree->host, node->host);
	if (!node->judged) {
		node->changeable = path_changeable(AT_FDCWD, tree_text(node, text));
		node->judged = true;
	}
	return node->changeable;
}

/* ---- walking ---------------------------------------------------------------- */

/*
 * The usual case is a plain path in a directory that exists: try to open that whole,
 * which tells in one call that none of its components is a link.
 */
static int try_parent(struct tree *tree, struct node *from, const char *path)
{
	struct node *node = from, *parent = from;
	const char *name;
	size_t length;

	while ((name = path_next(&path, &length)) != NULL) {
		if (length == 1 && *name == '.')
			continue;
		/* What is known already needs no trial, or is known to fail. */
		if (node->kind != NODE_UNKNOWN && node->kind != NODE_DIRECTORY)
			return 0;
		parent = node;
		node = tree_child(tree, node, name, length);
		if (node == NULL)
			return ENOMEM;
		if (length > NAME_MAX || node->path_length >= PATH_MAX)
			return ENAMETOOLONG;
	}
	if (parent->kind == NODE_UNKNOWN)
		directory_fd(tree, parent);
	return 0;
}

/* The texts still to follow: the path, and the targets of links on the way. */
struct pending {
	const char *texts[TREE_LINKS_MAX + 1];
	size_t count;
};

static const char *next_name(struct pending *pending, size_t *length)
{
	while (pending->count > 0) {
		const char *name = path_next(&pending->texts[pending->count - 1], length);
		if (name != NULL)
			return name;
		pending->count--;
	}
	return NULL;
}

static int follow_link(struct tree *tree, struct walk *walk, struct pending *pending,
                       struct node *link)
{
	if (walk->link_count == TREE_LINKS_MAX || pending->count > TREE_LINKS_MAX)
		return ELOOP;
	walk->links[walk->link_count++] = link;
	pending->texts[pending->count++] = link->target;
	walk->node = *link->target == '/' ? tree->root : link->parent;
	return 0;
}

static int step(struct tree *tree, struct walk *walk, struct pending *pending, const char *name,
                size_t length)
{
	struct node *child;
	int error;

	if (length == 1 && name[0] == '.')
		return 0;
	if (length == 2 && name[0] == '.' && name[1] == '.') {
		if (walk->node->parent != NULL)
			walk->node = walk->node->parent;
		return 0;
	}
	if (length > NAME_MAX)
		return ENAMETOOLONG;
	child = tree_child(tree, walk->node, name, length);
	if (child == NULL)
		return ENOMEM;
	if (child->path_length >= PATH_MAX)
		return ENAMETOOLONG;
	error = child->kind == NODE_UNKNOWN ? tree_look(tree, child) : 0;
	if (error != 0)
		return error;
	if (child->kind == NODE_LINK)
		return follow_link(tree, walk, pending, child);
	walk->node = child;
	return 0;
}

int tree_walk(struct tree *tree, struct node *from, const char *path, struct walk *walk)
{
	struct pending pending = { .texts = { path }, .count = 1 };
	const char *name;
	size_t length;
	int error = 0;

	walk->node = *path == '/' ? tree->root : from;
	walk->link_count = 0;
	if (strlen(path) >= PATH_MAX)
		return ENAMETOOLONG;
	if (tree->host == NULL && !path_has_dotdot(path))
		error = try_parent(tree, walk->node, path);
	while (error == 0 && (name = next_name(&pending, &length)) != NULL)
		error = step(tree, walk, &pending, name, length);
	return error != 0 ? error : tree_look(tree, walk->node);
}
