#include "path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *path_next(const char **cursor, size_t *length)
{
	const char *start = *cursor;

	while (*start == '/')
		start++;
	*length = strcspn(start, "/");
	*cursor = start + *length;
	return *length == 0 ? NULL : start;
}

char *path_simplify(struct arena *arena, const char *path)
{
	char *result = arena_alloc(arena, strlen(path) + 2);
	const char *name;
	char *end = result;
	size_t length;

	if (result == NULL)
		return NULL;
	if (*path == '/')
		*end++ = '/';
	while ((name = path_next(&path, &length)) != NULL) {
		if (length == 1 && *name == '.')
			continue;
		if (end > result && end[-1] != '/')
			*end++ = '/';
		memcpy(end, name, length);
		end += length;
	}
	if (end == result)
		*end = '.';
	return result;
}

bool path_has_dotdot(const char *path)
{
	const char *name;
	size_t length;

	while ((name = path_next(&path, &length)) != NULL)
		if (length == 2 && name[0] == '.' && name[1] == '.')
			return true;
	return false;
}

size_t path_depth(const char *path)
{
	size_t depth = 0, length;

	while (path_next(&path, &length) != NULL)
		depth++;
	return depth;
}

bool path_is_within(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	if (length == 1) /* "/" */
		return *path == '/';
	return strncmp(path, directory, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool path_changeable(int fd, const char *name)
{
	struct stat status;

	/* faccessat(2): EROFS is reported for W_OK before anything about permissions is granted. */
	if (faccessat(fd, name, W_OK, AT_EACCESS) == 0)
		return true;
	if (errno == EROFS)
		return false;
	return fstatat(fd, name, &status, 0) == 0 && status.st_uid == geteuid();
}
