/*
 * The unix sockets of the host that have a name in the filesystem.
 *
 * A read-only mount does not stop connect(2) (unix(7): it takes write permission on the
 * socket, not on the mount), and a filter cannot see the name.  So where named sockets
 * are usable inside, those of the host must not be in the view.  The kernel lists the
 * names as they were bound in /proc/net/unix (proc(5)).
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mounts.h"

/* The name at the end of a line of /proc/net/unix, or NULL where it has none in a directory. */
static char *socket_name(char *line)
{
	char *newline = strchr(line, '\n');
	char *name = strchr(line, '/');

	if (newline != NULL)
		*newline = '\0';
	return name != NULL && name > line && name[-1] == ' ' ? name : NULL;
}

static bool contains(const struct strings *list, const char *path)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		if (strcmp(list->items[i], path) == 0)
			return true;
	return false;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int append(struct strings *list, size_t *capacity, struct arena *arena, const char *path)
{
	if (list->count == *capacity) {
		size_t larger = *capacity == 0 ? 64 : *capacity * 2;
		const char **items = arena_array(arena, larger, sizeof *items);
		if (items == NULL)
			return -1;
		if (list->count > 0)
			memcpy(items, list->items, list->count * sizeof *items);
		list->items = items;
		*capacity = larger;
	}
	list->items[list->count] = arena_copy(arena, path, strlen(path));
	return list->items[list->count++] == NULL ? -1 : 0;
}

static void remove_doubles(struct strings *list)
{
	size_t i, kept = 0;

	if (list->count == 0)
		return;
	qsort(list->items, list->count, sizeof *list->items, compare);
	for (i = 0; i < list->count; i++)
		if (i == 0 || strcmp(list->items[i], list->items[kept - 1]) != 0)
			list->items[kept++] = list->items[i];
	list->count = kept;
}

/* 1: NAME leads to a socket, which CANONICAL names; 0: to none; -1: memory is exhausted. */
static int find_socket(const char *name, char canonical[PATH_MAX])
{
	struct stat status;

	if (realpath(name, canonical) == NULL)
		return errno == ENOMEM ? -1 : 0;
	return lstat(canonical, &status) == 0 && S_ISSOCK(status.st_mode);
}

static int cannot_list(struct failure *failure, int error)
{
	if (error == ENOMEM)
		return failure_memory(failure);
	return failure_unavailable(failure, "unix_sockets", "use unix_sockets = \"none\"",
	                           "the host's unix sockets cannot be listed: /proc/net/unix: %s",
	                           strerror(error));
}

int mounts_find_sockets(const struct strings *allowed, struct arena *arena, struct strings *out,
                        struct failure *failure)
{
	FILE *file = fopen("/proc/net/unix", "re");
	char *line = NULL;
	size_t size = 0, capacity = 0;
	int result = 0;

	if (file == NULL)
		return cannot_list(failure, errno);
	while (result == 0 && getline(&line, &size, file) >= 0) {
		char canonical[PATH_MAX];
		const char *name = socket_name(line);
		int found = name == NULL ? 0 : find_socket(name, canonical);

		if (found < 0 || (found > 0 && !contains(allowed, canonical) &&
		                  append(out, &capacity, arena, canonical) < 0))
			result = failure_memory(failure);
	}
	/* A list that ends early would leave sockets in the view. */
	if (result == 0 && !feof(file))
		result = cannot_list(failure, errno);
	free(line);
	fclose(file);
	remove_doubles(out);
	return result;
}
