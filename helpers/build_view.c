#include "build_view.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "build_dev.h"
#include "close_keeping_errno.h"
#include "mount_calls.h"

/* What masks show, in the launcher's own root, which goes away. */
#define MASK_DIRECTORY "/mask-directory"
#define MASK_FILE "/mask-file"

struct building {
	const struct request_view *request;
	int host; /* the host's root, O_PATH */
	int root; /* of the view, O_PATH */
	char *text;
	size_t size;
};

static int fail(struct building *b, const char *path, const char *what)
{
	int error = errno;

	snprintf(b->text, b->size, "%s %s: %s", what, path, strerror(error));
	errno = error;
	return -1;
}

/* Another object than the one that the policy was resolved for. */
static int replaced(struct building *b, const char *path)
{
	snprintf(b->text, b->size, "%s was replaced while the sandbox was set up", path);
	errno = 0;
	return -1;
}

/* ---- opening --------------------------------------------------------------------- */

/*
 * The canonical PATH below ROOT: no link is followed, and nothing leads out of it
 * (openat2(2)).  Returns an O_PATH descriptor of what is mounted there on top, or -1.
 */
static int open_below(int root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	if (path[1] == '\0')
		return openat(root, ".", O_PATH | O_CLOEXEC | O_DIRECTORY);
	return (int)syscall(SYS_openat2, root, path + 1, &how, sizeof how);
}

static int is_object(int fd, uint64_t device, uint64_t inode)
{
	struct stat status;

	if (device == 0 && inode == 0)
		return 1;
	return fstat(fd, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

/*
 * Places are made in directories of the sandbox's own, and never in the host's, which may
 * have come to light where somebody moved away what one of ours was mounted over.
 */
static int is_fresh(int directory)
{
	struct statfs status;

	return fstatfs(directory, &status) == 0 &&
	       (status.f_type == TMPFS_MAGIC || status.f_type == PROC_SUPER_MAGIC);
}

/*
 * The directory of PATH in the view, and in *NAME its last component.  What is missing on
 * the way is made: that can only be in a fresh directory, for elsewhere the view is the
 * host's, where resolution has seen all of it.
 */
static int open_parent(struct building *b, const char *path, const char **name)
{
	char directory[4096];
	const char *slash = strrchr(path, '/');
	size_t length = slash == path ? 1 : (size_t)(slash - path);
	const char *own;
	int fd, parent;

	if (length >= sizeof directory) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(directory, path, length);
	directory[length] = '\0';
	*name = slash + 1;
	fd = open_below(b->root, directory);
	if (fd >= 0 || errno != ENOENT || length == 1)
		return fd;
	parent = open_parent(b, directory, &own);
	if (parent < 0)
		return -1;
	if (is_fresh(parent))
		mkdirat(parent, own, 0755); /* if it fails, opening says why */
	close(parent);
	return open_below(b->root, directory);
}

/* Makes what MOUNT goes over, or what it is; our own directories have it or have it not. */
static int make_place(struct building *b, const struct request_mount *mount, const char *path)
{
	const char *name;
	int parent = open_parent(b, path, &name);
	int result;

	if (parent < 0)
		return -1;
	if (!is_fresh(parent)) {
		close(parent);
		errno = EXDEV;
		return -1;
	}
	if (mount->kind == VIEW_LINK)
		result = symlinkat(request_string(b->request, mount->source), parent, name);
	else if (mount->kind == VIEW_DIRECTORY)
		result = mkdirat(parent, name, mount->mode);
	else if (mount->flags & VIEW_IS_FILE)
		result = mknodat(parent, name, S_IFREG | 0444, 0);
	else
		result = mkdirat(parent, name, 0755);
	close_keeping_errno(parent);
	/* /dev has its own nodes to be mounted over. */
	return result < 0 && errno == EEXIST && mount->kind != VIEW_LINK ? 0 : result;
}

/* ---- trees ------------------------------------------------------------------------ */

static int tree_of_host(struct building *b, const struct request_mount *mount)
{
	const char *source = request_string(b->request, mount->source);
	uint64_t set = MOUNT_NO_SETID;
	int fd = open_below(b->host, source);
	int tree;

	if (fd < 0)
		return fail(b, source, "cannot open");
	if (!is_object(fd, mount->device, mount->inode)) {
		close(fd);
		return replaced(b, source);
	}
	if (!(mount->flags & VIEW_DEVICES))
		set |= MOUNT_NO_DEVICES;
	if (mount->flags & VIEW_READ_ONLY)
		set |= MOUNT_READ_ONLY;
	tree = mount_clone(fd, set);
	close_keeping_errno(fd);
	return tree < 0 ? fail(b, source, "cannot bind") : tree;
}

static int fresh_tree(struct building *b, unsigned mode, const char *path)
{
	char text[16];
	const struct mount_option options[] = { { "mode", text }, { NULL, NULL } };
	int tree;

	snprintf(text, sizeof text, "%o", mode);
	tree = mount_fresh("tmpfs", options, MOUNT_NO_SETID | MOUNT_NO_DEVICES);
	return tree < 0 ? fail(b, path, "cannot make a fresh directory for") : tree;
}

static int mask_tree(struct building *b, const char *mask, const char *path)
{
	int fd = open(mask, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	int tree = fd < 0 ? -1 : mount_clone(fd, MOUNT_READ_ONLY | MOUNT_NO_SETID | MOUNT_NO_DEVICES);

	close_keeping_errno(fd);
	return tree < 0 ? fail(b, path, "cannot mask") : tree;
}

/* The kernel lets this namespace have one, for the host's is still in reach, unmasked. */
static int proc_tree(struct building *b, const char *path)
{
	const struct mount_option none = { NULL, NULL };
	int tree = mount_fresh("proc", &none, MOUNT_NO_SETID | MOUNT_NO_DEVICES | MOUNT_NO_EXEC);

	return tree < 0 ? fail(b, path, "cannot mount") : tree;
}

static int tree_for(struct building *b, const struct request_mount *mount, const char *path)
{
	switch ((enum view_kind)mount->kind) {
	case VIEW_FRESH:
		return fresh_tree(b, mount->mode, path);
	case VIEW_BIND:
		return tree_of_host(b, mount);
	case VIEW_MASK:
		return mask_tree(b, MASK_DIRECTORY, path);
	case VIEW_MASK_FILE:
		return mask_tree(b, MASK_FILE, path);
	case VIEW_DEV:
		return fresh_tree(b, 0755, path);
	case VIEW_PROC:
		return proc_tree(b, path);
	case VIEW_DIRECTORY:
	case VIEW_LINK:
		break;
	}
	errno = EINVAL;
	return fail(b, path, "cannot mount");
}

/* ---- mounting ---------------------------------------------------------------------- */

static int attach(struct building *b, int tree, int place, const char *path)
{
	if (mount_attach(tree, place) < 0)
		return fail(b, path, "cannot mount over");
	return 0;
}

static int mount_one(struct building *b, const struct request_mount *mount)
{
	const char *path = request_string(b->request, mount->path);
	int place, tree, result;

	if ((mount->flags & VIEW_MADE) || mount->kind == VIEW_DIRECTORY || mount->kind == VIEW_LINK) {
		if (make_place(b, mount, path) < 0)
			return fail(b, path, "cannot make");
	}
	if (mount->kind == VIEW_DIRECTORY || mount->kind == VIEW_LINK)
		return 0;
	place = open_below(b->root, path);
	if (place < 0)
		return fail(b, path, "cannot open");
	if (!is_object(place, mount->place_device, mount->place_inode)) {
		close(place);
		return replaced(b, path);
	}
	tree = tree_for(b, mount, path);
	result = tree < 0 ? -1 : attach(b, tree, place, path);
	if (result == 0 && mount->kind == VIEW_DEV && build_dev(tree, b->host) < 0)
		result = fail(b, path, "cannot furnish");
	close(place);
	if (tree >= 0)
		close(tree);
	return result;
}

/* What was writable until everything in it was in place. */
static int close_one(struct building *b, const struct request_mount *mount)
{
	const char *path = request_string(b->request, mount->path);
	int fd, result;

	if ((mount->kind != VIEW_FRESH && mount->kind != VIEW_DEV) || !(mount->flags & VIEW_READ_ONLY))
		return 0;
	fd = open_below(b->root, path);
	if (fd < 0)
		return fail(b, path, "cannot open");
	result = mount_set(fd, 0, MOUNT_READ_ONLY);
	if (result < 0)
		fail(b, path, "cannot make read-only");
	close(fd);
	return result;
}

static int mount_root(struct building *b, const struct request_mount *mount)
{
	int place = open(VIEW_ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int tree = place < 0 ? fail(b, VIEW_ROOT, "cannot open") : tree_for(b, mount, "/");
	int result = tree < 0 ? -1 : attach(b, tree, place, "/");

	if (place >= 0)
		close(place);
	if (tree >= 0)
		close(tree);
	if (result < 0)
		return -1;
	b->root = open(VIEW_ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return b->root < 0 ? fail(b, VIEW_ROOT, "cannot open") : 0;
}

/* The view takes the place of the launcher's root, which is let go (pivot_root(2)). */
static int enter(struct building *b)
{
	if (fchdir(b->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return fail(b, "/", "cannot enter");
	return 0;
}

/*
 * Nothing may be changed but in a root that the launcher has made: a fresh one, in a process
 * namespace of its own where the request says so.
 */
static int is_launchers_root(const struct building *b)
{
	struct statfs status;

	errno = 0;
	if (request_has(b->request, REQUEST_PID_NAMESPACE) && getpid() != 1)
		return 0;
	return statfs("/", &status) == 0 && status.f_type == TMPFS_MAGIC;
}

static int prepare(struct building *b)
{
	if (!is_launchers_root(b)) {
		snprintf(b->text, b->size, "the launcher has made no root for the view");
		return -1;
	}
	b->host = open(VIEW_HOST, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (b->host < 0)
		return fail(b, VIEW_HOST, "cannot open");
	if (mkdir(MASK_DIRECTORY, 0) < 0 || mknod(MASK_FILE, S_IFREG, 0) < 0)
		return fail(b, "/", "cannot make masks in");
	return 0;
}

int build_view(const struct request_view *view, char *text, size_t size)
{
	struct building b = { .request = view, .host = -1, .root = -1, .text = text, .size = size };
	const struct request_mount *mounts = request_mounts(view);
	uint32_t number, count = view->request->mount_count;
	mode_t mask = umask(0);

	if (prepare(&b) < 0 || mount_root(&b, &mounts[0]) < 0)
		return -1;
	for (number = 1; number < count; number++)
		if (mount_one(&b, &mounts[number]) < 0)
			return -1;
	for (number = 0; number < count; number++)
		if (close_one(&b, &mounts[number]) < 0)
			return -1;
	if (enter(&b) < 0)
		return -1;
	close(b.host);
	close(b.root);
	umask(mask);
	return 0;
}
