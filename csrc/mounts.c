#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "guard.h"
#include "mounts_internal.h"
#include "path.h"

/* Names in the sandbox's own /dev; other names of the host's /dev are not there to deny. */
static const char *const dev_names[] = { "console", "core", "fd",      "full", "mqueue", "null",
	                                     "ptmx",    "pts",  "random",  "shm",  "stderr", "stdin",
	                                     "stdout",  "tty",  "urandom", "zero" };

const char *mount_kind_name(enum mount_kind kind)
{
	switch (kind) {
	case MOUNT_BASE:
		return "base";
	case MOUNT_BIND_READ:
		return "bind-read";
	case MOUNT_BIND_WRITE:
		return "bind-write";
	case MOUNT_BIND_DEVICE:
		return "bind-device";
	case MOUNT_PIN:
		return "pin";
	case MOUNT_MASK_DIRECTORY:
		return "mask-directory";
	case MOUNT_MASK_FILE:
		return "mask-file";
	case MOUNT_PRIVATE:
		return "private";
	case MOUNT_DEV:
		return "dev";
	case MOUNT_PROC:
		return "proc";
	case MOUNT_DIRECTORY:
		return "directory";
	case MOUNT_LINK:
		return "link";
	}
	return "?";
}

struct mount *mounts_add(struct mounts *mounts, struct arena *arena, enum mount_kind kind,
                         const char *path)
{
	struct mount *mount;

	if (mounts->count == mounts->capacity) {
		size_t capacity = mounts->capacity == 0 ? 32 : mounts->capacity * 2;
		struct mount *items = arena_array(arena, capacity, sizeof *items);
		if (items == NULL)
			return NULL;
		if (mounts->count > 0)
			memcpy(items, mounts->items, mounts->count * sizeof *items);
		mounts->items = items;
		mounts->capacity = capacity;
	}
	mount = &mounts->items[mounts->count++];
	memset(mount, 0, sizeof *mount);
	mount->kind = kind;
	mount->path = path;
	if (kind == MOUNT_MASK_DIRECTORY || kind == MOUNT_MASK_FILE)
		mounts->masks++;
	return mount;
}

/* ---- the host's paths of what is shown ------------------------------------- */

const char *mounts_rebase(struct arena *arena, const char *path, const char *directory,
                          const char *source)
{
	const char *rest = path + (directory[1] == '\0' ? 0 : strlen(directory));

	if (strcmp(directory, source) == 0)
		return path;
	if (*rest == '\0' || rest[1] == '\0')
		return source;
	return arena_format(arena, "%s%s", source[1] == '\0' ? "" : source, rest);
}

const char *builder_host_path(const struct builder *b, const struct mount *within, const char *path)
{
	return mounts_rebase(b->arena, path, within->path, within->source);
}

int builder_memory(struct builder *b)
{
	return failure_memory(b->failure);
}

struct mount *builder_add(struct builder *b, enum mount_kind kind, const char *path)
{
	struct mount *mount = mounts_add(b->mounts, b->arena, kind, path);

	if (mount == NULL)
		builder_memory(b);
	return mount;
}

struct mount *builder_bind(struct builder *b, enum mount_kind kind,
                           const struct resolved_rule *rule)
{
	struct mount *mount = builder_add(b, kind, rule->path);

	if (mount == NULL)
		return NULL;
	mount->source = rule_source(rule);
	mount->is_file = rule->object == OBJECT_FILE || rule->object == OBJECT_OTHER;
	mount->device = rule->device;
	mount->inode = rule->inode;
	mount->checked = true;
	return mount;
}

/* ---- directories in masks ---------------------------------------------- */

static bool has_directory(const struct builder *b, const char *path, size_t length)
{
	size_t i;

	/* Newest first: neighbours in the order of rules share their ancestors. */
	for (i = b->mounts->count; i > 0; i--) {
		const struct mount *mount = &b->mounts->items[i - 1];
		if (strncmp(mount->path, path, length) == 0 && mount->path[length] == '\0')
			return true;
	}
	return false;
}

/*
 * Makes the directories on the way from the mount number ENCLOSING, a mask or another
 * fresh directory, to PATH (exclusive).  In a mask they can be passed, not listed.
 */
static int add_ancestors(struct builder *b, size_t enclosing, const char *path)
{
	const struct mount *within = &b->mounts->items[enclosing];
	unsigned mode = within->kind == MOUNT_PRIVATE ? 0755 : 0111;
	size_t start = strlen(within->path) == 1 ? 0 : strlen(within->path);
	const char *slash;

	b->mounts->items[enclosing].reopened = true;
	for (slash = strchr(path + start + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		size_t length = (size_t)(slash - path);
		char *directory;
		struct mount *mount;

		if (has_directory(b, path, length))
			continue;
		directory = arena_copy(b->arena, path, length);
		if (directory == NULL)
			return builder_memory(b);
		mount = builder_add(b, MOUNT_DIRECTORY, directory);
		if (mount == NULL)
			return -1;
		mount->mode = mode;
	}
	return 0;
}

int builder_claim(struct builder *b, struct mount *mount, const char *host)
{
	mount->claim = host;
	if (strcmp(host, mount->path) == 0)
		return 0;
	return failure_policy(b->failure,
	                      "'%s' cannot be kept from being made where another directory is shown: "
	                      "make '%s' before, or leave the rule out",
	                      mount->path, host);
}

/* ---- rules --------------------------------------------------------------- */

static struct mount *add_mask(struct builder *b, const struct resolved_rule *rule)
{
	bool directory = rule->object == OBJECT_DIRECTORY || is_missing(rule);
	struct mount *mount =
		builder_add(b, directory ? MOUNT_MASK_DIRECTORY : MOUNT_MASK_FILE, rule->path);

	if (mount == NULL)
		return NULL;
	mount->device = rule->device;
	mount->inode = rule->inode;
	/* git and others take a name in a hidden home that is missing for what it is, but complain
	 * of one that they may not look for. */
	mount->reopened = directory && rule->origin == ORIGIN_SPECIAL;
	mount->checked = true;
	return mount;
}

static bool in_own_dev(const char *path)
{
	const char *name = path + sizeof "/dev";
	size_t i;

	for (i = 0; i < sizeof dev_names / sizeof *dev_names; i++)
		if (strcmp(name, dev_names[i]) == 0)
			return true;
	return false;
}

/* Whether a mount on a placeholder is needed for the missing thing that RULE is about. */
static int needs_placeholder(struct builder *b, const struct resolved_rule *rule,
                             const struct mount *within, const char **host)
{
	char directory[PATH_MAX];

	*host = builder_host_path(b, within, rule->path);
	if (*host == NULL)
		return builder_memory(b);
	switch (guard_for(*host, within->source, directory)) {
	case GUARD_REFUSE:
		return failure_policy(b->failure,
		                      "'%s' cannot be kept from being made: it would lie in what is a "
		                      "file now, and which the policy lets the command replace",
		                      rule->path);
	case GUARD_PLACEHOLDER:
		return 1;
	default:
		return 0;
	}
}

static int add_missing(struct builder *b, const struct resolved_rule *rule,
                       const struct mount *within)
{
	const char *host;
	struct mount *mount;
	int needed = needs_placeholder(b, rule, within, &host);

	if (needed <= 0)
		return needed;
	mount =
		rule->access == ACCESS_DENY ? add_mask(b, rule) : builder_bind(b, MOUNT_BIND_READ, rule);
	return mount == NULL ? -1 : builder_claim(b, mount, host);
}

static int add_deny(struct builder *b, const struct resolved_rule *rule, const struct mount *within)
{
	bool masked = !is_missing(rule);

	switch (within->kind) {
	case MOUNT_BIND_WRITE:
		if (!masked)
			return add_missing(b, rule, within);
		break;
	case MOUNT_BIND_READ:
	case MOUNT_BIND_DEVICE:
	case MOUNT_PROC:
		break;
	case MOUNT_DEV:
		masked = in_own_dev(rule->path);
		break;
	case MOUNT_PRIVATE:
		masked = true;
		break;
	default:
		return 0; /* nothing is there to see */
	}
	return masked && add_mask(b, rule) == NULL ? -1 : 0;
}

static int add_read(struct builder *b, const struct resolved_rule *rule, const struct mount *within)
{
	if (!is_missing(rule))
		return builder_bind(b, MOUNT_BIND_READ, rule) == NULL ? -1 : 0;
	return within->kind == MOUNT_BIND_WRITE ? add_missing(b, rule, within) : 0;
}

/* The mount already shows the path as RULE wants it. */
static bool is_redundant(const struct resolved_rule *rule, const struct mount *within, bool remap)
{
	if (remap || is_fresh(rule) || rule->origin == ORIGIN_DEVICE)
		return false;
	/* The sandbox's own nodes are usable as they are; the host's /dev/shm is another one. */
	if (rule->access != ACCESS_DENY && within->kind == MOUNT_DEV && in_own_dev(rule->path) &&
	    strcmp(rule->path, "/dev/shm") != 0)
		return true;
	if (rule->access == ACCESS_READ)
		return within->kind == MOUNT_BIND_READ;
	if (rule->access == ACCESS_WRITE)
		return within->kind == MOUNT_BIND_WRITE;
	return false;
}

/* Something else than what WITHIN shows at RULE's path; -1 with a failure. */
static int is_remap(struct builder *b, const struct resolved_rule *rule, const struct mount *within)
{
	const char *shown;

	if (rule->access == ACCESS_DENY || is_fresh(rule) || !shows_host(within))
		return rule->source != NULL;
	shown = builder_host_path(b, within, rule->path);
	if (shown == NULL)
		return builder_memory(b);
	return strcmp(shown, rule_source(rule)) != 0;
}

/* A remapped object needs something of its kind to be mounted on. */
static int check_remap(struct builder *b, const struct resolved_rule *rule,
                       const struct mount *within)
{
	const char *place;
	struct stat status;

	if (!shows_host(within))
		return 0;
	place = builder_host_path(b, within, rule->path);
	if (place == NULL)
		return builder_memory(b);
	if (lstat(place, &status) < 0)
		return failure_policy(b->failure,
		                      "cannot show '%s' at '%s': the latter does not exist below '%s', "
		                      "which the sandbox may not add to",
		                      rule_source(rule), rule->path, within->path);
	if (S_ISDIR(status.st_mode) != (rule->object == OBJECT_DIRECTORY))
		return failure_policy(b->failure,
		                      "cannot show '%s' at '%s': one is a directory, the other is not",
		                      rule_source(rule), rule->path);
	return 0;
}

static int add_fresh(struct builder *b, enum mount_kind kind, const char *path, unsigned mode)
{
	struct mount *mount = builder_add(b, kind, path);

	if (mount == NULL)
		return -1;
	mount->mode = mode;
	return 0;
}

static int add_dev(struct builder *b, const struct resolved_rule *rule)
{
	if (strcmp(rule->path, "/dev") == 0)
		return add_fresh(b, MOUNT_DEV, rule->path, 0755);
	if (strcmp(rule->path, "/dev/shm") == 0)
		return add_fresh(b, MOUNT_PRIVATE, rule->path, 01777);
	return 0; /* the other nodes come with /dev */
}

/*
 * Without any capability, the initial namespace's root may still write what belongs to
 * it: /proc/sys/kernel/core_pattern, say, which names a program for the host to run.
 * bubblewrap covers only directories that are writable themselves, which /proc/sys is not.
 */
static int cover_kernel_files(struct builder *b)
{
	static const char *const names[] = {
		"/proc/acpi",          "/proc/asound",        "/proc/bus",  "/proc/driver", "/proc/fs",
		"/proc/irq",           "/proc/latency_stats", "/proc/mtrr", "/proc/scsi",   "/proc/sys",
		"/proc/sysrq-trigger", "/proc/timer_stats",   "/proc/tty"
	};
	size_t i;

	for (i = 0; i < sizeof names / sizeof *names; i++) {
		struct resolved_rule rule = { 0 };
		struct stat status;

		if (lstat(names[i], &status) < 0)
			continue;
		rule.path = names[i];
		rule.device = status.st_dev;
		rule.inode = status.st_ino;
		if (builder_bind(b, MOUNT_BIND_READ, &rule) == NULL)
			return -1;
	}
	return 0;
}

static int show_proc(struct builder *b, const struct resolved_rule *rule)
{
	if (b->mounts->own_proc) {
		if (add_fresh(b, MOUNT_PROC, rule->path, 0555) < 0)
			return -1;
	} else if (builder_bind(b, MOUNT_BIND_WRITE, rule) == NULL) {
		return -1;
	}
	return b->options->real_root ? cover_kernel_files(b) : 0;
}

static int add_proc(struct builder *b, const struct resolved_rule *rule)
{
	if (rule->access == ACCESS_DENY || (b->options->process_namespace && !b->mounts->own_proc))
		return add_fresh(b, MOUNT_MASK_DIRECTORY, rule->path, 0);
	return show_proc(b, rule);
}

/* What is mounted over is a placeholder where the host's files are shown around it. */
static int add_private_home(struct builder *b, const struct resolved_rule *rule,
                            const struct mount *within)
{
	static const char *const names[] = { "home", "tmp" };
	struct mount *mount = builder_add(b, MOUNT_PRIVATE, rule->path);
	size_t i;

	if (mount == NULL)
		return -1;
	b->top = b->mounts->count - 1;
	mount->mode = 0700;
	mount->checked = true;
	if (shows_host(within) && (mount->claim = builder_host_path(b, within, rule->path)) == NULL)
		return builder_memory(b);
	for (i = 0; i < sizeof names / sizeof *names; i++) {
		const char *path = arena_format(b->arena, "%s/%s", rule->path, names[i]);

		if (path == NULL)
			return builder_memory(b);
		if (add_fresh(b, MOUNT_DIRECTORY, path, 0700) < 0)
			return -1;
	}
	return 0;
}

static int add_mounts(struct builder *b, const struct resolved_rule *rule,
                      const struct mount *within)
{
	switch (rule->origin) {
	case ORIGIN_DEV:
		return add_dev(b, rule);
	case ORIGIN_DEVICE:
		return builder_bind(b, MOUNT_BIND_DEVICE, rule) == NULL ? -1 : 0;
	case ORIGIN_PROC:
		return add_proc(b, rule);
	case ORIGIN_PRIVATE_TMP:
		return add_fresh(b, within->kind == MOUNT_PRIVATE ? MOUNT_DIRECTORY : MOUNT_PRIVATE,
		                 rule->path, 01777);
	case ORIGIN_PRIVATE_HOME:
		return add_private_home(b, rule, within);
	default:
		if (rule->access == ACCESS_DENY)
			return add_deny(b, rule, within);
		if (rule->access == ACCESS_READ)
			return add_read(b, rule, within);
		return builder_writable(b, rule, shows_host(within) && is_remap(b, rule, within) == 0);
	}
}

/*
 * Where the mounts from number FIRST on go: the first into WITHIN, made there or found on
 * the host; those below the first into that.
 */
static int note_places(struct builder *b, size_t first, const struct mount *within)
{
	size_t i;

	for (i = first; i < b->mounts->count; i++) {
		struct mount *mount = &b->mounts->items[i];
		const struct mount *holder = &b->mounts->items[first];
		const char *host;
		struct stat status;

		if (i == first || !path_is_within(mount->path, holder->path))
			holder = within;
		mount->made = i == first && !shows_host(holder);
		/* The sandbox's own /proc is another one than the host's, which is what is seen here. */
		if (mount->claim || b->mounts->items[first].kind == MOUNT_PROC || !shows_host(holder))
			continue;
		host = builder_host_path(b, holder, mount->path);
		if (host == NULL)
			return builder_memory(b);
		if (mount->source != NULL && mount->inode != 0 && strcmp(mount->source, host) == 0) {
			mount->place_device = mount->device;
			mount->place_inode = mount->inode;
		} else if (lstat(host, &status) == 0) {
			mount->place_device = status.st_dev;
			mount->place_inode = status.st_ino;
		}
	}
	return 0;
}

static int add_rule(struct builder *b, size_t number)
{
	const struct resolved_rule *rule = &b->resolved->rules[number];
	const struct resolved_rule *parent = resolved_parent(b->resolved, number);
	size_t enclosing = parent == NULL ? 0 : b->enclosing[parent - b->resolved->rules];
	struct mount within = b->mounts->items[enclosing]; /* a copy: the list may move */
	int remap = is_remap(b, rule, &within);
	size_t before;

	b->enclosing[number] = enclosing;
	if (remap < 0)
		return -1;
	if (is_redundant(rule, &within, remap > 0))
		return 0;
	if (remap > 0 && check_remap(b, rule, &within) < 0)
		return -1;
	if (rule->access != ACCESS_DENY && !shows_host(&within) && within.kind != MOUNT_DEV &&
	    within.kind != MOUNT_PROC && rule->origin != ORIGIN_DEV &&
	    !(rule->access == ACCESS_READ && is_missing(rule)) &&
	    add_ancestors(b, enclosing, rule->path) < 0)
		return -1;

	before = b->mounts->count;
	b->top = SIZE_MAX;
	if (add_mounts(b, rule, &within) < 0 || note_places(b, before, &within) < 0)
		return -1;
	/* The last mount is on top, but for /proc, whose covers lie in it. */
	if (b->mounts->count > before) {
		size_t top = b->top != SIZE_MAX ? b->top : b->mounts->count - 1;
		b->enclosing[number] = rule->origin == ORIGIN_PROC ? before : top;
	}
	return 0;
}

static int add_base(struct builder *b)
{
	const struct resolved_rule *root = b->resolved->count > 0 ? &b->resolved->rules[0] : NULL;

	if (root != NULL && strcmp(root->path, "/") != 0)
		root = NULL;
	if (root == NULL || root->access == ACCESS_DENY)
		return builder_add(b, MOUNT_BASE, "/") == NULL ? -1 : 0;
	if (root->access == ACCESS_READ)
		return builder_bind(b, MOUNT_BIND_READ, root) == NULL ? -1 : 0;
	if (b->policy->filesystem != FILESYSTEM_EXTERNAL)
		return builder_writable_root(b, root);
	/* Somebody else contains the command: all is shown as it is, devices included. */
	if (builder_bind(b, MOUNT_BIND_DEVICE, root) == NULL)
		return -1;
	return b->mounts->own_proc ? add_fresh(b, MOUNT_PROC, "/proc", 0555) : 0;
}

/* ---- links and sockets ---------------------------------------------------- */

/* The number of the mount that shows PATH's directory. */
static size_t enclosing_of(const struct builder *b, const char *path, char *directory)
{
	const struct resolved_rule *rule;
	const char *slash = strrchr(path, '/');
	size_t length = slash == path ? 1 : (size_t)(slash - path);

	memcpy(directory, path, length);
	directory[length] = '\0';
	rule = resolved_find(b->resolved, directory);
	return rule == NULL ? 0 : b->enclosing[rule - b->resolved->rules];
}

/* A link on the way to something granted is made again where its directory is masked. */
static int add_link(struct builder *b, const struct resolved_link *link)
{
	char directory[PATH_MAX];
	size_t enclosing;
	struct mount *mount;
	enum mount_kind kind;

	if (strlen(link->path) >= sizeof directory)
		return 0;
	enclosing = enclosing_of(b, link->path, directory);
	kind = b->mounts->items[enclosing].kind;
	if (kind != MOUNT_BASE && kind != MOUNT_MASK_DIRECTORY && kind != MOUNT_PRIVATE)
		return 0;
	if (has_directory(b, link->path, strlen(link->path)))
		return 0;
	if (add_ancestors(b, enclosing, link->path) < 0)
		return -1;
	mount = builder_add(b, MOUNT_LINK, link->path);
	if (mount == NULL)
		return -1;
	mount->source = link->target;
	return 0;
}

static int add_links(struct builder *b)
{
	size_t i;

	for (i = 0; i < b->resolved->link_count; i++)
		if (add_link(b, &b->resolved->links[i]) < 0)
			return -1;
	return 0;
}

/* The mount that shows PATH as what the host has at HOST, and not denied; NULL: none does. */
static const struct mount *shows_socket(const struct builder *b, const char *path, const char *host)
{
	const struct resolved_rule *rule = resolved_find(b->resolved, path);
	const struct mount *mount;
	const char *shown;

	if (rule == NULL || rule->access == ACCESS_DENY)
		return NULL;
	mount = &b->mounts->items[b->enclosing[rule - b->resolved->rules]];
	if (!shows_host(mount))
		return NULL;
	shown = builder_host_path(b, mount, path);
	return shown == NULL || strcmp(shown, host) == 0 ? mount : NULL;
}

static int mask_socket(struct builder *b, const char *path, const struct mount *shown_by)
{
	const struct mount within = *shown_by; /* a copy: the list may move */
	struct mount *mount = builder_add(b, MOUNT_MASK_FILE, path);

	if (mount == NULL)
		return -1;
	mount->checked = true;
	return note_places(b, b->mounts->count - 1, &within);
}

/* Masks the host's socket HOST at every place where one of the first COUNT mounts shows it. */
static int mask_everywhere(struct builder *b, const char *host, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const struct mount *mount = &b->mounts->items[i];
		const char *path;

		if (!shows_host(mount) || !path_is_within(host, mount->source))
			continue;
		path = mounts_rebase(b->arena, host, mount->source, mount->path);
		if (path == NULL)
			return builder_memory(b);
		if (shows_socket(b, path, host) == mount && mask_socket(b, path, mount) < 0)
			return -1;
	}
	return 0;
}

static int mask_sockets(struct builder *b)
{
	struct strings sockets = { NULL, 0 };
	size_t i, count = b->mounts->count;

	if (mounts_find_sockets(&b->policy->unix_socket_paths, b->arena, &sockets, b->failure) < 0)
		return -1;
	for (i = 0; i < sockets.count; i++)
		if (mask_everywhere(b, sockets.items[i], count) < 0)
			return -1;
	return 0;
}

static int add_socket(struct builder *b, const char *path)
{
	char directory[PATH_MAX];
	struct resolved_rule rule = { .path = path, .object = OBJECT_OTHER };
	struct stat status;
	struct mount within;
	size_t enclosing;

	if (strlen(path) >= sizeof directory || lstat(path, &status) < 0 || !S_ISSOCK(status.st_mode))
		return failure_policy(b->failure,
		                      "'%s' in unix_sockets is not a socket (a link to one must be "
		                      "given as the socket it leads to)",
		                      path);
	if (shows_socket(b, path, path) != NULL)
		return 0;
	enclosing = enclosing_of(b, path, directory);
	within = b->mounts->items[enclosing]; /* a copy: the list may move */
	if (shows_host(&within))
		return failure_policy(b->failure,
		                      "'%s' in unix_sockets cannot be shown: a rule denies it, or shows "
		                      "something else in its place",
		                      path);
	if (add_ancestors(b, enclosing, path) < 0)
		return -1;
	rule.device = status.st_dev;
	rule.inode = status.st_ino;
	if (builder_bind(b, MOUNT_BIND_WRITE, &rule) == NULL)
		return -1;
	return note_places(b, b->mounts->count - 1, &within);
}

/* The host's sockets that the policy names stay, or appear where their directory is masked. */
static int add_sockets(struct builder *b)
{
	size_t i;

	for (i = 0; i < b->policy->unix_socket_paths.count; i++)
		if (add_socket(b, b->policy->unix_socket_paths.items[i]) < 0)
			return -1;
	return 0;
}

int mounts_build(const struct policy *policy, const struct resolved *resolved,
                 const struct mounts_options *options, struct arena *arena, struct mounts *out,
                 struct failure *failure)
{
	struct builder b = { policy,  resolved, options,  arena,       out,
		                 failure, NULL,     SIZE_MAX, { NULL, 0 }, { NULL, 0 } };
	size_t i;

	memset(out, 0, sizeof *out);
	out->own_proc = options->process_namespace && options->proc_mountable;
	if (policy->mount_proc == CHOICE_YES && options->process_namespace && !out->own_proc)
		return failure_unavailable(failure, "mount_proc",
		                           "leave mount_proc unset: /proc is hidden then",
		                           "this host does not let a sandbox mount its own /proc");
	b.enclosing = arena_array(arena, resolved->count + 1, sizeof *b.enclosing);
	if (b.enclosing == NULL)
		return failure_memory(failure);
	if (add_base(&b) < 0 || note_places(&b, 1, &out->items[0]) < 0)
		return -1;
	for (i = 0; i < resolved->count; i++)
		if (strcmp(resolved->rules[i].path, "/") != 0 && add_rule(&b, i) < 0)
			return -1;
	if (add_links(&b) < 0)
		return -1;
	if (options->mask_sockets && (mask_sockets(&b) < 0 || add_sockets(&b) < 0))
		return -1;
	return 0;
}
