#include "glob_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tree.h"

enum { BUFFER_BYTES = 64 * 1024 };

/* A directory still to be read. */
struct waiting {
	struct waiting *next;
	struct glob_place place;
	uint32_t state; /* after its path and a slash */
	int64_t depth;  /* 0: the root */
	char path[];    /* relative; "." for the root */
};

struct walker {
	const struct glob_visitor *visitor;
	struct failure *failure;
	struct glob_machine *machine;
	struct waiting *waiting;
	const char *display;
	int64_t max_depth;
	int root;
	bool no_openat2;
	char *buffer;
	char path[PATH_MAX]; /* of the entry being looked at */
};

static int too_expensive(struct walker *walker)
{
	return glob_machine_failure(walker->machine, walker->display, walker->failure);
}

static int unreadable(struct walker *walker, const char *path, int error)
{
	bool is_root = strcmp(path, ".") == 0;

	failure_policy(walker->failure,
	               "The deny globs cannot be applied: the directory %s%s%s cannot be read: %s.",
	               walker->display, is_root || strcmp(walker->display, "/") == 0 ? "" : "/",
	               is_root ? "" : path, strerror(error));
	walker->failure->errnum = error;
	return -1;
}

static int push(struct walker *walker, const char *path, size_t length, struct glob_place place,
                uint32_t state, int64_t depth)
{
	struct waiting *waiting = malloc(sizeof *waiting + length + 1);

	if (waiting == NULL)
		return failure_memory(walker->failure);
	memcpy(waiting->path, path, length);
	waiting->path[length] = '\0';
	waiting->place = place;
	waiting->state = state;
	waiting->depth = depth;
	waiting->next = walker->waiting;
	walker->waiting = waiting;
	return 0;
}

/* ---- entries ------------------------------------------------------------------------ */

struct kernel_entry { /* getdents64(2) */
	uint64_t inode;
	int64_t offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

static enum glob_type type_of(int fd, const struct kernel_entry *entry)
{
	struct stat status;

	switch (entry->type) {
	case DT_DIR:
		return GLOB_TYPE_DIRECTORY;
	case DT_LNK:
		return GLOB_TYPE_LINK;
	case DT_UNKNOWN: /* some file systems never say */
		if (fstatat(fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
			return GLOB_TYPE_ELSE;
		return S_ISDIR(status.st_mode)   ? GLOB_TYPE_DIRECTORY
		       : S_ISLNK(status.st_mode) ? GLOB_TYPE_LINK
		                                 : GLOB_TYPE_ELSE;
	default:
		return GLOB_TYPE_ELSE;
	}
}

static int enter(struct walker *walker, const struct waiting *directory,
                 const struct glob_entry *entry, uint32_t state)
{
	struct glob_place place = entry->place;

	if (walker->max_depth >= 0 && directory->depth + 1 >= walker->max_depth)
		return 0;
	state = glob_machine_read(walker->machine, state, "/", 1);
	if (state == GLOB_NONE)
		return too_expensive(walker);
	if (glob_machine_dead(walker->machine, state) ||
	    !walker->visitor->enter(walker->visitor->data, entry, &place))
		return 0;
	return push(walker, entry->path, strlen(entry->path), place, state, directory->depth + 1);
}

static int visit(struct walker *walker, const struct waiting *directory, int fd,
                 const struct kernel_entry *found, size_t prefix)
{
	struct glob_entry entry = { .path = walker->path,
		                        .name = found->name,
		                        .name_length = strlen(found->name),
		                        .place = directory->place };
	uint32_t state =
		glob_machine_read(walker->machine, directory->state, found->name, entry.name_length);
	bool directory_matters;

	if (state == GLOB_NONE)
		return too_expensive(walker);
	entry.match = glob_machine_match(walker->machine, state, false);
	entry.directory_match = glob_machine_match(walker->machine, state, true);
	/* Most entries are files that match nothing, or are dead ends. */
	directory_matters =
		entry.directory_match != GLOB_NONE || !glob_machine_dead(walker->machine, state);
	if (!directory_matters)
		return 0;
	if (found->type == DT_REG && entry.match == GLOB_NONE)
		return 0;
	if (prefix + entry.name_length >= sizeof walker->path)
		return unreadable(walker, directory->path, ENAMETOOLONG);
	memcpy(walker->path + prefix, found->name, entry.name_length + 1);
	entry.type = type_of(fd, found);
	if (entry.type == GLOB_TYPE_DIRECTORY)
		entry.match = entry.directory_match;
	if ((entry.match != GLOB_NONE ||
	     (entry.type == GLOB_TYPE_LINK && entry.directory_match != GLOB_NONE)) &&
	    walker->visitor->found(walker->visitor->data, &entry) != 0)
		return -1;
	return entry.type == GLOB_TYPE_DIRECTORY ? enter(walker, directory, &entry, state) : 0;
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int read_entries(struct walker *walker, const struct waiting *directory, int fd)
{
	size_t prefix = strcmp(directory->path, ".") == 0 ? 0 : strlen(directory->path) + 1;
	long length;

	if (prefix > 0) {
		memcpy(walker->path, directory->path, prefix - 1);
		walker->path[prefix - 1] = '/';
	}
	while ((length = syscall(SYS_getdents64, fd, walker->buffer, BUFFER_BYTES)) > 0) {
		const char *at = walker->buffer, *end = at + length;
		while (at < end) {
			const struct kernel_entry *entry = (const void *)at;
			at += entry->length;
			if (!is_dots(entry->name) && visit(walker, directory, fd, entry, prefix) != 0)
				return -1;
		}
	}
	/* A directory that was removed meanwhile has nothing to mask. */
	if (length < 0 && errno != ENOENT)
		return unreadable(walker, directory->path, errno);
	return 0;
}

static int read_directory(struct walker *walker, const struct waiting *directory)
{
	int fd =
		tree_open_plain(walker->root, directory->path, O_RDONLY | O_DIRECTORY, &walker->no_openat2);
	int result;

	if (fd < 0) {
		/* It was removed, or replaced by something that is no directory. */
		if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
			return 0;
		return unreadable(walker, directory->path, errno);
	}
	result = read_entries(walker, directory, fd);
	close(fd);
	return result;
}

/* ---- the walk -------------------------------------------------------------------------- */

static int walk_all(struct walker *walker)
{
	while (walker->waiting != NULL) {
		struct waiting *directory = walker->waiting;
		int result;
		walker->waiting = directory->next;
		result = read_directory(walker, directory);
		free(directory);
		if (result != 0)
			return -1;
	}
	return 0;
}

static int start(struct walker *walker, const char *prefix, struct glob_place place)
{
	uint32_t state;

	if (walker->buffer == NULL || walker->machine == NULL)
		return failure_memory(walker->failure);
	if (walker->max_depth == 0)
		return 0;
	state = glob_machine_start(walker->machine);
	if (state != GLOB_NONE)
		state = glob_machine_read(walker->machine, state, prefix, strlen(prefix));
	if (state == GLOB_NONE)
		return too_expensive(walker);
	return push(walker, ".", 1, place, state, 0);
}

int glob_walk(const struct globs *globs, int root, const char *display, const char *prefix,
              int64_t max_depth, struct glob_place place, const struct glob_visitor *visitor,
              struct failure *failure)
{
	struct walker *walker = calloc(1, sizeof *walker);
	int result;

	if (walker == NULL)
		return failure_memory(failure);
	walker->visitor = visitor;
	walker->failure = failure;
	walker->display = display;
	walker->max_depth = max_depth;
	walker->root = root;
	walker->machine = glob_machine_new(globs);
	walker->buffer = malloc(BUFFER_BYTES);
	result = start(walker, prefix, place);
	if (result == 0)
		result = walk_all(walker);
	while (walker->waiting != NULL) {
		struct waiting *next = walker->waiting->next;
		free(walker->waiting);
		walker->waiting = next;
	}
	glob_machine_free(walker->machine);
	free(walker->buffer);
	free(walker);
	return result;
}
