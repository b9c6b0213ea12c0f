#include "account.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MOST = 4096, FIELDS = 6 };

/* The home in LINE where that is USER's (passwd(5)): the third field, and the sixth. */
static const char *home_in(char *line, uid_t user)
{
	char *fields[FIELDS], *end;
	int i;

	for (i = 0; i < FIELDS; i++) {
		fields[i] = strsep(&line, ":");
		if (fields[i] == NULL)
			return NULL;
	}
	if (*fields[2] == '\0' || strtoul(fields[2], &end, 10) != user || *end != '\0')
		return NULL;
	return fields[5];
}

static const char *take(const char *home, char *buffer, size_t size)
{
	if (strlen(home) >= size) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return strcpy(buffer, home); /* NOLINT: it fits */
}

/*
 * The file itself, without any memory: where that is short, one database is passed over and
 * the next says, truly, that it has nobody.
 */
static const char *read_file(int fd, uid_t user, char *buffer, size_t size)
{
	char bytes[LINE_MOST], *newline;
	size_t held = 0;
	bool skipping = false;

	for (;;) {
		ssize_t got = read(fd, bytes + held, sizeof bytes - 1 - held);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			errno = got < 0 ? errno : 0;
			return NULL;
		}
		held += (size_t)got;
		while ((newline = memchr(bytes, '\n', held)) != NULL) {
			const char *home;

			*newline = '\0';
			home = skipping ? NULL : home_in(bytes, user);
			if (home != NULL)
				return take(home, buffer, size);
			skipping = false;
			held -= (size_t)(newline + 1 - bytes);
			memmove(bytes, newline + 1, held);
		}
		if (held == sizeof bytes - 1) { /* a line that is too long for any account */
			skipping = true;
			held = 0;
		}
	}
}

static const char *from_file(uid_t user, char *buffer, size_t size)
{
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	const char *home;
	int error;

	if (fd < 0) {
		errno = errno == ENOENT ? 0 : errno;
		return NULL;
	}
	home = read_file(fd, user, buffer, size);
	error = errno;
	close(fd);
	errno = error;
	return home;
}

const char *account_home(uid_t user, char *buffer, size_t size)
{
	struct passwd entry, *found = NULL;
	int error;

	errno = 0;
	error = getpwuid_r(user, &entry, buffer, size, &found);
	if (found != NULL)
		return found->pw_dir;
	if (error == ENOMEM || errno == ENOMEM) {
		errno = ENOMEM;
		return NULL;
	}
	return from_file(user, buffer, size);
}
