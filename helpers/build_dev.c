#include "build_dev.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "close_keeping_errno.h"
#include "mount_calls.h"

static const char *const nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };

static const struct {
	const char *name;
	const char *target;
} links[] = {
	{ "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
	{ "ptmx", "pts/ptmx" },
};

static int is_character_device(int fd)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return 0;
	errno = ENODEV;
	return S_ISCHR(status.st_mode);
}

static int bind_node(int dev, int host, const char *name)
{
	char path[32];
	int source, place, tree = -1, result = -1;

	snprintf(path, sizeof path, "dev/%s", name);
	source = openat(host, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	place = openat(dev, name, O_CREAT | O_EXCL | O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0444);
	if (source >= 0 && place >= 0 && is_character_device(source))
		tree = mount_clone(source, MOUNT_NO_SETID | MOUNT_NO_EXEC);
	if (tree >= 0)
		result = mount_attach(tree, place);
	close_keeping_errno(tree);
	close_keeping_errno(place);
	close_keeping_errno(source);
	return result;
}

/* Terminals that are nobody else's (devpts in the kernel's documentation of filesystems). */
static int mount_terminals(int dev)
{
	static const struct mount_option options[] = {
		{ "newinstance", NULL },
		{ "ptmxmode", "0666" },
		{ "mode", "620" },
		{ NULL, NULL },
	};
	int tree = mount_fresh("devpts", options, MOUNT_NO_SETID | MOUNT_NO_EXEC);
	int place = -1, result = -1;

	if (tree >= 0 && mkdirat(dev, "pts", 0755) == 0)
		place = openat(dev, "pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place >= 0)
		result = mount_attach(tree, place);
	close_keeping_errno(place);
	close_keeping_errno(tree);
	return result;
}

int build_dev(int dev, int host)
{
	size_t i;

	for (i = 0; i < sizeof nodes / sizeof *nodes; i++)
		if (bind_node(dev, host, nodes[i]) < 0)
			return -1;
	for (i = 0; i < sizeof links / sizeof *links; i++)
		if (symlinkat(links[i].target, dev, links[i].name) < 0)
			return -1;
	if (mkdirat(dev, "shm", 0755) < 0)
		return -1;
	return mount_terminals(dev);
}
