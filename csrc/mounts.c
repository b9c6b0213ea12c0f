#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "../helpers/claim.h"

/* Names in the sandbox's own /dev; other names of the host's /dev are not there to deny. */
static const char *const dev_names[] = {"console", "core",   "fd",     "full",   "mqueue", "null",
                                        "ptmx",    "pts",    "random", "shm",    "stderr", "stdin",
                                        "stdout",  "tty",    "urandom", "zero"};

struct builder {
	const struct policy *policy;
	const struct resolved *resolved;
	const struct mounts_options *options;
	struct arena *arena;
	struct mounts *mounts;
	struct failure *failure;
	size_t *enclosing; /* by rule: the mount that shows the rule's path */
	struct strings pins;
};

const char *mount_kind_name(enum mount_kind kind)
{
	switch (kind) {
	case MOUNT_BASE: return "base";
	case MOUNT_BIND_READ: return "bind-read";
	case MOUNT_BIND_WRITE: return "bind-write";
	case MOUNT_BIND_DEVICE: return "bind-device";
	case MOUNT_PIN: return "pin";
	case MOUNT_MASK_DIRECTORY: return "mask-directory";
	case MOUNT_MASK_FILE: return "mask-file";
	case MOUNT_PRIVATE: return "private";
	case MOUNT_DEV: return "dev";
	case MOUNT_PROC: return "proc";
	case MOUNT_DIRECTORY: return "directory";
	case MOUNT_LINK: return "link";
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

/* The host's files are visible through it, as opposed to a directory of our making. */
static bool shows_host(const struct mount *mount)
{
	return mount->kind == MOUNT_BIND_READ || mount->kind == MOUNT_BIND_WRITE ||
	       mount->kind == MOUNT_BIND_DEVICE;
}

static bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	if (length == 1)
		return path[0] == '/' && path[1] != '\0';
	return strncmp(path, directory, length) == 0 && path[length] == '/';
}

static int out_of_memory(struct builder *b)
{
	return failure_memory(b->failure);
}

static struct mount *add(struct builder *b, enum mount_kind kind, const char *path)
{
	struct mount *mount = mounts_add(b->mounts, b->arena, kind, path);

	if (mount == NULL)
		out_of_memory(b);
	return mount;
}

/* A bind of what RULE names, to be checked by object in the end. */
static struct mount *add_bind(struct builder *b, enum mount_kind kind,
                              const struct resolved_rule *rule)
{
	struct mount *mount = add(b, kind, rule->path);

	if (mount == NULL)
		return NULL;
	mount->source = rule->source != NULL ? rule->source : rule->path;
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
			return out_of_memory(b);
		mount = add(b, MOUNT_DIRECTORY, directory);
		if (mount == NULL)
			return -1;
		mount->mode = mode;
	}
	return 0;
}

/* ---- what a rule stands for ----------------------------------------------- */

static bool is_missing(const struct resolved_rule *rule)
{
	return rule->object == OBJECT_MISSING || rule->object == OBJECT_PLACEHOLDER;
}

/* The rule's directory is made for the run: nothing of the host's is in it. */
static bool is_fresh(const struct resolved_rule *rule)
{
	return rule->origin == ORIGIN_PRIVATE_TMP || rule->origin == ORIGIN_PROC ||
	       rule->origin == ORIGIN_DEV;
}

/* Cuts PATH to its parent directory; false at the root. */
static bool to_parent(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash == NULL || path[1] == '\0')
		return false;
	slash[slash == path] = '\0';
	return true;
}

/* Filesystems in which the kernel alone makes files, whoever asks. */
static bool is_kernels_own(const char *path)
{
	struct statfs status;

	return statfs(path, &status) == 0 &&
	       (status.f_type == SYSFS_MAGIC || status.f_type == PROC_SUPER_MAGIC ||
	        status.f_type == SECURITYFS_MAGIC || status.f_type == DEBUGFS_MAGIC ||
	        status.f_type == TRACEFS_MAGIC);
}

enum claimable { CLAIM_NEEDLESS, CLAIM_POSSIBLE, CLAIM_IN_FILE };

/*
 * Whether a placeholder can be made for the missing PATH.  Where the caller may not add
 * to its nearest existing directory, the command may not either, and nothing is needed.
 * Where that is no directory, the command could put one in its place.
 */
static enum claimable claimable(const char *path)
{
	char nearest[PATH_MAX];
	struct stat status;

	if (strlen(path) >= sizeof nearest)
		return CLAIM_NEEDLESS;
	memcpy(nearest, path, strlen(path) + 1);
	do {
		if (!to_parent(nearest))
			return CLAIM_NEEDLESS;
	} while (stat(nearest, &status) < 0 && (errno == ENOENT || errno == ENOTDIR));
	if (faccessat(AT_FDCWD, nearest, W_OK, AT_EACCESS) < 0 || is_kernels_own(nearest))
		return CLAIM_NEEDLESS;
	return S_ISDIR(status.st_mode) ? CLAIM_POSSIBLE : CLAIM_IN_FILE;
}

/* A placeholder of ours, or nothing yet (claim.h has the mark). */
static bool needs_claim(const char *path)
{
	struct stat status;

	if (lstat(path, &status) < 0)
		return errno == ENOENT;
	return claim_is_marked(&status, geteuid());
}

/* ---- pins ---------------------------------------------------------------- */

static int add_pin_path(struct builder *b, const char *path)
{
	size_t i;

	for (i = 0; i < b->pins.count; i++)
		if (strcmp(b->pins.items[i], path) == 0)
			return 0;
	if ((b->pins.count & (b->pins.count + 1)) == 0) { /* grow at 0, 1, 3, 7, … */
		const char **items = arena_array(b->arena, b->pins.count * 2 + 1, sizeof *items);
		if (items == NULL)
			return out_of_memory(b);
		if (b->pins.count > 0)
			memcpy(items, b->pins.items, b->pins.count * sizeof *items);
		b->pins.items = items;
	}
	b->pins.items[b->pins.count++] = path;
	return 0;
}

/* Whether what RULE says narrows the writable mount that shows it. */
static bool narrows(const struct builder *b, const struct resolved_rule *rule, size_t number)
{
	const struct resolved_rule *parent = resolved_parent(b->resolved, number);

	return rule->access != ACCESS_WRITE && rule->source == NULL && parent != NULL &&
	       parent->access == ACCESS_WRITE && !is_fresh(parent) &&
	       (!is_missing(rule) || claimable(rule->path) == CLAIM_POSSIBLE);
}

/*
 * Mount points cannot be renamed, but their parents can: a command that renames the
 * parent of a protected directory could put another one in its place for the host to
 * find.  So every directory between the writable root ROOT and a narrowed path below
 * it becomes a mount point too.
 */
static int collect_pins(struct builder *b, const char *root)
{
	size_t start = strlen(root) == 1 ? 0 : strlen(root);
	size_t i;

	b->pins.count = 0;
	b->pins.items = NULL;
	for (i = 0; i < b->resolved->count; i++) {
		const struct resolved_rule *rule = &b->resolved->rules[i];
		const struct resolved_rule *holder = resolved_parent(b->resolved, i);
		const char *slash;

		if (!is_below(rule->path, root) || !narrows(b, rule, i))
			continue;
		/* Only where ROOT's own mount shows it, not one nested in between. */
		while (holder != NULL && strcmp(holder->path, root) != 0 &&
		       holder->access == ACCESS_WRITE && holder->source == NULL && !is_fresh(holder))
			holder = resolved_parent(b->resolved, (size_t)(holder - b->resolved->rules));
		if (holder == NULL || strcmp(holder->path, root) != 0)
			continue;
		slash = strchr(rule->path + start + 1, '/');
		for (; slash != NULL; slash = strchr(slash + 1, '/')) {
			char *path = arena_copy(b->arena, rule->path, (size_t)(slash - rule->path));
			if (path == NULL)
				return out_of_memory(b);
			if (add_pin_path(b, path) < 0)
				return -1;
		}
	}
	return 0;
}

static int add_pin(struct builder *b, const char *path)
{
	struct mount *mount = add(b, MOUNT_PIN, path);
	struct stat status;

	if (mount == NULL)
		return -1;
	mount->source = path;
	mount->checked = true;
	mount->claim = needs_claim(path);
	if (!mount->claim && lstat(path, &status) == 0) {
		mount->device = status.st_dev;
		mount->inode = status.st_ino;
	}
	return 0;
}

/*
 * Pins go beneath the bind that the command sees: a directory is then a mount point,
 * so that renaming it fails, and yet one mount shows all of the root, so that moves
 * and hard links across directories work.
 */
static int add_writable(struct builder *b, const struct resolved_rule *rule, bool host_beneath)
{
	size_t i;

	if (collect_pins(b, rule->path) < 0)
		return -1;
	if (b->pins.count > 0 && !host_beneath) {
		struct mount *beneath = add_bind(b, MOUNT_BIND_WRITE, rule);
		if (beneath == NULL)
			return -1;
		beneath->checked = false; /* the command never sees it */
	}
	for (i = 0; i < b->pins.count; i++)
		if (add_pin(b, b->pins.items[i]) < 0)
			return -1;
	return add_bind(b, MOUNT_BIND_WRITE, rule) == NULL ? -1 : 0;
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
static int add_writable_root(struct builder *b, const struct resolved_rule *rule)
{
	size_t i, j;

	if (add_bind(b, MOUNT_BIND_WRITE, rule) == NULL || collect_pins(b, "/") < 0)
		return -1;
	for (i = 0; i < b->pins.count; i++) {
		const char *top = b->pins.items[i];

		if (top_length(top) != strlen(top))
			continue;
		for (j = 0; j < b->pins.count; j++)
			if (is_below(b->pins.items[j], top) && add_pin(b, b->pins.items[j]) < 0)
				return -1;
		if (add_pin(b, top) < 0)
			return -1;
	}
	return 0;
}

/* ---- rules --------------------------------------------------------------- */

static int add_mask(struct builder *b, const struct resolved_rule *rule, bool claim)
{
	bool directory = rule->object == OBJECT_DIRECTORY || is_missing(rule);
	struct mount *mount =
	    add(b, directory ? MOUNT_MASK_DIRECTORY : MOUNT_MASK_FILE, rule->path);

	if (mount == NULL)
		return -1;
	mount->device = rule->device;
	mount->inode = rule->inode;
	mount->claim = claim;
	mount->checked = true;
	return 0;
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

static int refuse_in_file(struct builder *b, const struct resolved_rule *rule)
{
	return failure_policy(b->failure,
	                      "'%s' cannot be kept from being made: it would lie in what is a file now, "
	                      "and which the policy lets the command replace",
	                      rule->path);
}

static int add_deny(struct builder *b, const struct resolved_rule *rule, const struct mount *within)
{
	bool missing = is_missing(rule);

	switch (within->kind) {
	case MOUNT_BIND_WRITE:
		if (!missing)
			return add_mask(b, rule, false);
		switch (claimable(rule->path)) {
		case CLAIM_NEEDLESS:
			return 0;
		case CLAIM_IN_FILE:
			return refuse_in_file(b, rule);
		case CLAIM_POSSIBLE:
			break;
		}
		return add_mask(b, rule, true);
	case MOUNT_BIND_READ:
	case MOUNT_BIND_DEVICE:
		return missing ? 0 : add_mask(b, rule, false);
	case MOUNT_PROC:
		return missing ? 0 : add_mask(b, rule, false);
	case MOUNT_DEV:
		return in_own_dev(rule->path) ? add_mask(b, rule, false) : 0;
	case MOUNT_PRIVATE:
		return add_mask(b, rule, false);
	default:
		return 0; /* nothing is there to see */
	}
}

static int add_read(struct builder *b, const struct resolved_rule *rule, const struct mount *within)
{
	struct mount *mount;
	bool missing = is_missing(rule);

	if (missing && within->kind != MOUNT_BIND_WRITE)
		return 0;
	if (missing && claimable(rule->path) == CLAIM_IN_FILE)
		return refuse_in_file(b, rule);
	if (missing && claimable(rule->path) == CLAIM_NEEDLESS)
		return 0;
	mount = add_bind(b, MOUNT_BIND_READ, rule);
	if (mount == NULL)
		return -1;
	mount->claim = missing;
	return 0;
}

/* The mount already shows the path as RULE wants it. */
static bool is_redundant(const struct resolved_rule *rule, const struct mount *within)
{
	if (rule->source != NULL || is_fresh(rule) || rule->origin == ORIGIN_DEVICE)
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

/* A remapped object needs something of its kind to be mounted on. */
static int check_remap(struct builder *b, const struct resolved_rule *rule,
                       const struct mount *within)
{
	struct stat status;

	if (!shows_host(within))
		return 0;
	if (lstat(rule->path, &status) < 0)
		return failure_policy(b->failure,
		                      "cannot show '%s' at '%s': the latter does not exist below '%s', "
		                      "which the sandbox may not add to",
		                      rule->source, rule->path, within->path);
	if (S_ISDIR(status.st_mode) != (rule->object == OBJECT_DIRECTORY))
		return failure_policy(b->failure,
		                      "cannot show '%s' at '%s': one is a directory, the other is not",
		                      rule->source, rule->path);
	return 0;
}

static int add_fresh(struct builder *b, enum mount_kind kind, const char *path, unsigned mode)
{
	struct mount *mount = add(b, kind, path);

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
	static const char *const names[] = {"/proc/acpi", "/proc/asound",  "/proc/bus",
	                                    "/proc/driver", "/proc/fs",    "/proc/irq",
	                                    "/proc/latency_stats", "/proc/mtrr", "/proc/scsi",
	                                    "/proc/sys",    "/proc/sysrq-trigger",
	                                    "/proc/timer_stats", "/proc/tty"};
	size_t i;

	for (i = 0; i < sizeof names / sizeof *names; i++) {
		struct resolved_rule rule = {0};
		struct stat status;

		if (lstat(names[i], &status) < 0)
			continue;
		rule.path = names[i];
		rule.device = status.st_dev;
		rule.inode = status.st_ino;
		if (add_bind(b, MOUNT_BIND_READ, &rule) == NULL)
			return -1;
	}
	return 0;
}

static int show_proc(struct builder *b, const struct resolved_rule *rule)
{
	if (b->mounts->own_proc) {
		if (add_fresh(b, MOUNT_PROC, rule->path, 0555) < 0)
			return -1;
	} else if (add_bind(b, MOUNT_BIND_WRITE, rule) == NULL) {
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

static int add_mounts(struct builder *b, const struct resolved_rule *rule,
                      const struct mount *within)
{
	switch (rule->origin) {
	case ORIGIN_DEV:
		return add_dev(b, rule);
	case ORIGIN_DEVICE:
		return add_bind(b, MOUNT_BIND_DEVICE, rule) == NULL ? -1 : 0;
	case ORIGIN_PROC:
		return add_proc(b, rule);
	case ORIGIN_PRIVATE_TMP:
		return add_fresh(b, within->kind == MOUNT_PRIVATE ? MOUNT_DIRECTORY : MOUNT_PRIVATE,
		                 rule->path, 01777);
	default:
		if (rule->access == ACCESS_DENY)
			return add_deny(b, rule, within);
		if (rule->access == ACCESS_READ)
			return add_read(b, rule, within);
		return add_writable(b, rule, shows_host(within));
	}
}

/*
 * Where the mounts from number FIRST on go: the first into what shows it, MADE there or
 * found on the host; the others into the first.
 */
static void note_place(struct builder *b, size_t first, bool made)
{
	size_t i;

	for (i = first; i < b->mounts->count; i++) {
		struct mount *mount = &b->mounts->items[i];
		struct stat status;

		mount->made = made && i == first;
		/* The sandbox's own /proc is another one than the host's, which is what is seen here. */
		if (mount->made || mount->claim || b->mounts->items[first].kind == MOUNT_PROC)
			continue;
		if (mount->source != NULL && mount->inode != 0 && strcmp(mount->source, mount->path) == 0) {
			mount->place_device = mount->device;
			mount->place_inode = mount->inode;
		} else if (lstat(mount->path, &status) == 0) {
			mount->place_device = status.st_dev;
			mount->place_inode = status.st_ino;
		}
	}
}

static int add_rule(struct builder *b, size_t number)
{
	const struct resolved_rule *rule = &b->resolved->rules[number];
	const struct resolved_rule *parent = resolved_parent(b->resolved, number);
	size_t enclosing = parent == NULL ? 0 : b->enclosing[parent - b->resolved->rules];
	struct mount within = b->mounts->items[enclosing]; /* a copy: the list may move */
	size_t before;

	b->enclosing[number] = enclosing;
	if (is_redundant(rule, &within))
		return 0;
	if (rule->source != NULL && check_remap(b, rule, &within) < 0)
		return -1;
	if (rule->access != ACCESS_DENY && !shows_host(&within) && within.kind != MOUNT_DEV &&
	    within.kind != MOUNT_PROC && rule->origin != ORIGIN_DEV &&
	    !(rule->access == ACCESS_READ && is_missing(rule)) &&
	    add_ancestors(b, enclosing, rule->path) < 0)
		return -1;

	before = b->mounts->count;
	if (add_mounts(b, rule, &within) < 0)
		return -1;
	note_place(b, before, !shows_host(&within));
	/* The last mount is on top, but for /proc, whose covers lie in it. */
	if (b->mounts->count > before)
		b->enclosing[number] = rule->origin == ORIGIN_PROC ? before : b->mounts->count - 1;
	return 0;
}

static int add_base(struct builder *b)
{
	const struct resolved_rule *root = b->resolved->count > 0 ? &b->resolved->rules[0] : NULL;

	if (root != NULL && strcmp(root->path, "/") != 0)
		root = NULL;
	if (root == NULL || root->access == ACCESS_DENY)
		return add(b, MOUNT_BASE, "/") == NULL ? -1 : 0;
	if (root->access == ACCESS_READ)
		return add_bind(b, MOUNT_BIND_READ, root) == NULL ? -1 : 0;
	if (b->policy->filesystem != FILESYSTEM_EXTERNAL)
		return add_writable_root(b, root);
	/* Somebody else contains the command: all is shown as it is, devices included. */
	if (add_bind(b, MOUNT_BIND_DEVICE, root) == NULL)
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
	mount = add(b, MOUNT_LINK, link->path);
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

static bool shows_socket(const struct builder *b, const char *path)
{
	char directory[PATH_MAX];
	const struct resolved_rule *rule = resolved_find(b->resolved, path);

	if (strlen(path) >= sizeof directory || rule == NULL || rule->access == ACCESS_DENY)
		return false;
	return shows_host(&b->mounts->items[b->enclosing[rule - b->resolved->rules]]);
}

static int mask_sockets(struct builder *b)
{
	struct strings sockets = {NULL, 0};
	size_t i;

	if (mounts_find_sockets(b->resolved, &b->policy->unix_socket_paths, b->arena, &sockets,
	                        b->failure) < 0)
		return -1;
	for (i = 0; i < sockets.count; i++) {
		struct mount *mount;

		if (!shows_socket(b, sockets.items[i]))
			continue;
		mount = add(b, MOUNT_MASK_FILE, sockets.items[i]);
		if (mount == NULL)
			return -1;
		mount->checked = true;
		note_place(b, b->mounts->count - 1, false);
	}
	return 0;
}

/* The host's sockets that the policy names stay, or appear where their directory is masked. */
static int add_sockets(struct builder *b)
{
	size_t i;

	for (i = 0; i < b->policy->unix_socket_paths.count; i++) {
		const char *path = b->policy->unix_socket_paths.items[i];
		char directory[PATH_MAX];
		struct resolved_rule rule = {0};
		struct stat status;
		size_t enclosing;

		if (strlen(path) >= sizeof directory || lstat(path, &status) < 0 ||
		    !S_ISSOCK(status.st_mode))
			return failure_policy(b->failure,
			                      "'%s' in unix_sockets is not a socket (a link to one must be "
			                      "given as the socket it leads to)",
			                      path);
		if (shows_socket(b, path))
			continue;
		enclosing = enclosing_of(b, path, directory);
		if (add_ancestors(b, enclosing, path) < 0)
			return -1;
		rule.path = path;
		rule.object = OBJECT_OTHER;
		rule.device = status.st_dev;
		rule.inode = status.st_ino;
		if (add_bind(b, MOUNT_BIND_WRITE, &rule) == NULL)
			return -1;
		note_place(b, b->mounts->count - 1, true);
	}
	return 0;
}

int mounts_build(const struct policy *policy, const struct resolved *resolved,
                 const struct mounts_options *options, struct arena *arena, struct mounts *out,
                 struct failure *failure)
{
	struct builder b = {policy, resolved, options, arena, out, failure, NULL, {NULL, 0}};
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
	if (add_base(&b) < 0)
		return -1;
	note_place(&b, 0, false);
	for (i = 0; i < resolved->count; i++)
		if (strcmp(resolved->rules[i].path, "/") != 0 && add_rule(&b, i) < 0)
			return -1;
	if (add_links(&b) < 0)
		return -1;
	if (options->mask_sockets && (mask_sockets(&b) < 0 || add_sockets(&b) < 0))
		return -1;
	return 0;
}
