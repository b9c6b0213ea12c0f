#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "entry.h"

#define PREFIX "execsandbox-"

static int read_file(int directory, const char *name, char *text, size_t size)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	size_t total = 0;
	ssize_t length = 0;

	if (fd < 0)
		return -1;
	while (total < size - 1 && (length = read(fd, text + total, size - 1 - total)) > 0)
		total += (size_t)length;
	close(fd);
	text[total] = '\0';
	return length < 0 ? -1 : 0;
}

static int write_file(int directory, const char *name, uint64_t value)
{
	char text[32];
	int length = snprintf(text, sizeof text, "%llu\n", (unsigned long long)value);
	int fd = openat(directory, name, O_WRONLY | O_CLOEXEC);
	ssize_t written;
	int saved;

	if (fd < 0)
		return -1;
	written = write(fd, text, (size_t)length);
	saved = errno;
	close(fd);
	errno = saved;
	return written == length ? 0 : -1;
}

/* Whether WORD is one of the comma-separated words in LIST, which ends at END. */
static bool has_word(const char *list, const char *end, const char *word)
{
	size_t length = strlen(word);

	while (list < end) {
		const char *comma = memchr(list, ',', (size_t)(end - list));
		const char *stop = comma != NULL ? comma : end;

		if ((size_t)(stop - list) == length && memcmp(list, word, length) == 0)
			return true;
		list = stop + 1;
	}
	return false;
}

/*
 * Finds our own cgroup, as cgroups(7) describes /proc/self/cgroup: "7:pids:/path" with
 * version 1, "0::/path" with version 2.
 */
static bool own_path(char *text, const char **path, bool *version2)
{
	const char *unified = NULL;
	char *line, *rest, *controllers, *name;

	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		controllers = strchr(line, ':');
		name = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
		if (name == NULL)
			continue;
		if (has_word(controllers + 1, name, "pids")) {
			*path = name + 1;
			*version2 = false;
			return true;
		}
		if (strncmp(line, "0::", 3) == 0)
			unified = name + 1;
	}
	*path = unified;
	*version2 = true;
	return unified != NULL;
}

/* Undoes the octal escapes of mountinfo (proc_pid_mountinfo(5)), in place. */
static void unescape(char *text)
{
	char *out = text;

	while (*text != '\0') {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] != '\0' &&
		    text[3] != '\0') {
			*out++ = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
			text += 4;
		} else {
			*out++ = *text++;
		}
	}
	*out = '\0';
}

/*
 * Where PATH of the hierarchy is mounted: fields 4 and 5 of mountinfo are the root of
 * the mount within the hierarchy, and the mount point.
 */
static bool mounted_at(char *text, const char *path, bool version2, char *result, size_t size)
{
	char *line, *rest, *fields[6], *kind, *next;
	int field;

	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		char *type = strstr(line, " - ");
		size_t length;

		if (type == NULL)
			continue;
		*type = '\0';
		kind = type + 3;
		if (strncmp(kind, version2 ? "cgroup2 " : "cgroup ", version2 ? 8 : 7) != 0)
			continue;
		/* "cgroup SOURCE OPTIONS": the controllers are among the options. */
		next = strrchr(kind, ' ');
		if (!version2 && !has_word(next + 1, next + 1 + strlen(next + 1), "pids"))
			continue;
		for (field = 0, next = line; field < 5 && next != NULL; field++)
			fields[field] = strsep(&next, " ");
		if (field < 5)
			continue;
		unescape(fields[3]);
		unescape(fields[4]);
		length = strcmp(fields[3], "/") == 0 ? 0 : strlen(fields[3]);
		if (strncmp(path, fields[3], length) != 0 || (path[length] != '/' && path[length] != '\0'))
			continue;
		return (size_t)snprintf(result, size, "%s%s", fields[4], path + length) < size;
	}
	return false;
}

/* A cgroup that somebody's killed supervisor left: nobody locks it, nothing is in it. */
static void remove_stale(int parent)
{
	_Alignas(struct entry) char buffer[4096];
	int list = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long length, at;
	int fd;

	if (list < 0)
		return;
	while ((length = syscall(SYS_getdents64, list, buffer, sizeof buffer)) > 0) {
		for (at = 0; at < length;) {
			const struct entry *entry = (const struct entry *)(const void *)(buffer + at);

			at += entry->length;
			if (strncmp(entry->name, PREFIX, sizeof PREFIX - 1) != 0)
				continue;
			fd = openat(parent, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (fd < 0)
				continue;
			if (flock(fd, LOCK_EX | LOCK_NB) == 0)
				unlinkat(parent, entry->name, AT_REMOVEDIR);
			close(fd);
		}
	}
	close(list);
}

/* Makes the directory below PARENT and locks it; another's remove_stale may come between. */
static int make(struct cgroup *cgroup)
{
	struct stat here, there;
	int attempt;

	for (attempt = 0; attempt < 100; attempt++) {
		if (mkdirat(cgroup->parent, cgroup->name, 0755) < 0 && errno != EEXIST)
			return -1;
		cgroup->directory =
			openat(cgroup->parent, cgroup->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (cgroup->directory < 0 && errno == ENOENT)
			continue;
		if (cgroup->directory < 0)
			return -1;
		if (flock(cgroup->directory, LOCK_EX | LOCK_NB) == 0 &&
		    fstat(cgroup->directory, &here) == 0 &&
		    fstatat(cgroup->parent, cgroup->name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		    here.st_ino == there.st_ino)
			return 0;
		close(cgroup->directory);
		cgroup->directory = -1;
	}
	errno = EBUSY;
	return -1;
}

/* Makes one below PATH, if the pids controller is there, and moves PID into it. */
static int enter_below(struct cgroup *cgroup, const char *path, pid_t pid, uint64_t most)
{
	int saved;

	cgroup->parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup->parent < 0)
		return -1;
	remove_stale(cgroup->parent);
	if (make(cgroup) == 0 && write_file(cgroup->directory, "pids.max", most) == 0 &&
	    write_file(cgroup->directory, "cgroup.procs", (uint64_t)pid) == 0)
		return 0;
	saved = errno;
	cgroup_remove(cgroup);
	errno = saved;
	return -1;
}

int cgroup_enter(struct cgroup *cgroup, pid_t pid, uint64_t processes, uint32_t run_id)
{
	static char text[256 * 1024]; /* a mount table may be long */
	char cgroups[4096], path[4096], *slash;
	const char *own;
	bool version2;

	snprintf(cgroup->name, sizeof cgroup->name, PREFIX "%d-%u", (int)getpid(), run_id);
	if (read_file(AT_FDCWD, "/proc/self/cgroup", cgroups, sizeof cgroups) < 0 ||
	    read_file(AT_FDCWD, "/proc/self/mountinfo", text, sizeof text) < 0)
		return -1;
	if (!own_path(cgroups, &own, &version2) ||
	    !mounted_at(text, own, version2, path, sizeof path)) {
		errno = ENOENT;
		return -1;
	}
	if (enter_below(cgroup, path, pid, processes + 1) == 0)
		return 0;
	/*
	 * Version 2: where our own cgroup holds processes, its children have no pids.max
	 * (cgroups(7), "no internal processes"), but its siblings may.
	 */
	slash = strrchr(path, '/');
	if (!version2 || slash == NULL || slash == path)
		return -1;
	*slash = '\0';
	return enter_below(cgroup, path, pid, processes + 1);
}

void cgroup_remove(struct cgroup *cgroup)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int attempt;

	/* EBUSY: its last process is still on its way out. */
	for (attempt = 0; cgroup->directory >= 0 && attempt < 500; attempt++) {
		if (unlinkat(cgroup->parent, cgroup->name, AT_REMOVEDIR) == 0 || errno != EBUSY)
			break;
		nanosleep(&pause, NULL);
	}
	if (cgroup->directory >= 0)
		close(cgroup->directory);
	if (cgroup->parent >= 0)
		close(cgroup->parent);
	cgroup->directory = cgroup->parent = -1;
}
