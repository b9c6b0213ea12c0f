/* A policy that asks for more mounts than can be made: what to say of it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mounts.h"

/* The directory with most masks directly in it, for a message that helps. */
static const char *busiest_directory(const struct mounts *mounts, struct arena *arena,
                                     size_t *count)
{
	const char *best = NULL;
	size_t i, best_count = 0, length = 0, run = 0;

	for (i = 0; i < mounts->count; i++) {
		const char *path = mounts->items[i].path;
		const char *slash = strrchr(path, '/');
		size_t here = slash == NULL ? 0 : (size_t)(slash - path);

		run = i > 0 && here == length && strncmp(path, mounts->items[i - 1].path, here + 1) == 0
		          ? run + 1
		          : 1;
		length = here;
		if (run > best_count && here > 0) {
			best_count = run;
			best = path;
		}
	}
	*count = best_count;
	if (best == NULL)
		return NULL;
	return arena_copy(arena, best, (size_t)(strrchr(best, '/') - best));
}

int mounts_too_many(const struct mounts *mounts, struct arena *arena, struct failure *failure,
                    const char *format, ...)
{
	size_t most = 0;
	const char *directory = busiest_directory(mounts, arena, &most);
	char limit[128];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(limit, sizeof limit, format, arguments);
	va_end(arguments);
	return failure_unavailable(
		failure, "explicit_filesystem_scopes",
		"deny or grant a common directory instead of the single paths in it",
		"the policy needs %zu mounts (%zu of them masks), which are %s; '%s' alone has %zu of them",
		mounts->count, mounts->masks, limit, directory == NULL ? "/" : directory, most);
}
