#include "verify.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/stat.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "canonical.h"
#include "entry.h"

/* capabilities(7): zero in every set, so that no exec can bring one back. */
static const char *verify_capabilities(const struct request_view *view)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	int capability, held, number;

	if (syscall(SYS_capget, &header, data) < 0)
		return "the capabilities cannot be read";
	for (number = 0; number < _LINUX_CAPABILITY_U32S_3; number++) {
		if ((data[number].effective | data[number].permitted | data[number].inheritable) != 0)
			return "the sandbox holds capabilities";
	}
	/* Past the last capability that the kernel has, EINVAL. */
	for (capability = 0; capability < 64; capability++) {
		held = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
		if (held < 0)
			break;
		/*
		 * An ordinary user who runs without a launcher cannot empty its bounding
		 * set; no_new_privs makes it meaningless.
		 */
		if (held > 0 && (!request_has(view, REQUEST_DIRECT) || geteuid() == 0))
			return "the sandbox's capability bounding set is not empty";
	}
	return NULL;
}

/* The launcher brought it up; a server on 127.0.0.1 is part of what was promised. */
static const char *verify_loopback(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request;
	int result;

	if (fd < 0)
		return "the sandbox has no internet sockets";
	memset(&request, 0, sizeof request);
	strcpy(request.ifr_name, "lo");
	result = ioctl(fd, SIOCGIFFLAGS, &request);
	close(fd);
	if (result < 0 || !(request.ifr_flags & IFF_UP))
		return "the sandbox's loopback interface is not up";
	return NULL;
}

int verify_process(const struct request_view *view, char *text, size_t size)
{
	const char *wrong = NULL;

	if (request_has(view, REQUEST_PID_NAMESPACE) && getpid() != 1)
		wrong = "the sandbox has no process namespace of its own";
	if (wrong == NULL && request_has(view, REQUEST_FILTER))
		wrong = verify_capabilities(view);
	if (wrong == NULL && request_has(view, REQUEST_NET_LOOPBACK))
		wrong = verify_loopback();
	if (wrong == NULL)
		return 0;
	snprintf(text, size, "%s", wrong);
	return -1;
}

/* Whether there is anything in PATH; not known counts as nothing. */
static int holds_something(const char *path)
{
	_Alignas(struct entry) char buffer[1024];
	int directory = open_canonical(path, O_RDONLY | O_DIRECTORY);
	long length = 0, at;
	int found = 0;

	if (directory < 0)
		return 0;
	while (!found && (length = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0) {
		for (at = 0; at < length && !found;) {
			const struct entry *entry = (const struct entry *)(const void *)(buffer + at);

			found = strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0;
			at += entry->length;
		}
	}
	close(directory);
	return found;
}

/*
 * A directory on which something is mounted anywhere in this namespace can be neither
 * renamed nor removed, through whatever mount it is reached (rename(2): EBUSY).  The root
 * of a mount says so itself; beneath another mount only rmdir(2) tells, whose order of
 * tests is: read-only mount, permission, mount point, and then only "not empty".  It is
 * tried on what is not empty, so that the wrong answer removes nothing.
 */
static const char *check_pin(int fd, const char *path)
{
	struct statx status;

	/* Not every libc has a function for it. */
	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE, &status) < 0 ||
	    !S_ISDIR(status.stx_mode))
		return "is no directory";
	if ((status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) &&
	    (status.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return NULL;
	if (!holds_something(path)) {
		/* Unreadable: whether it can be renamed cannot be tried safely. */
		return access(path, R_OK) < 0 && errno == EACCES ? NULL : "is no mount point";
	}
	if (rmdir(path) == 0)
		return "is no mount point";
	if (errno == EBUSY || errno == EROFS || errno == EACCES || errno == EPERM)
		return NULL;
	return "is no mount point";
}

static const char *check_object(const struct request_check *check, int fd, const char *path)
{
	struct stat status;
	struct statvfs mount;
	bool same, read_only;

	if (check->kind == CHECK_PIN)
		return check_pin(fd, path);
	if (fstat(fd, &status) < 0 || fstatvfs(fd, &mount) < 0)
		return "cannot be looked at";
	same = status.st_dev == check->device && status.st_ino == check->inode;
	read_only = (mount.f_flag & ST_RDONLY) != 0;
	switch (check->kind) {
	case CHECK_BIND_READ:
		if (!same)
			return "is another object";
		return read_only ? NULL : "is writable";
	case CHECK_BIND_WRITE:
		return same ? NULL : "is another object";
	case CHECK_MASK_DIRECTORY:
		if (same || !S_ISDIR(status.st_mode))
			return "is not masked";
		if ((status.st_mode & 07777 & ~0111u) != 0)
			return "is masked, but readable";
		return read_only ? NULL : "is masked, but writable";
	case CHECK_MASK_FILE:
		if (same || !S_ISREG(status.st_mode))
			return "is not masked";
		return (status.st_mode & 07777) == 0 && status.st_size == 0 ? NULL
		                                                            : "is masked, but readable";
	case CHECK_PRIVATE:
		if (same || !S_ISDIR(status.st_mode))
			return "is not private";
		return read_only ? "is read-only" : NULL;
	default:
		return "has an unknown check";
	}
}

static bool is_mask(const struct request_check *check)
{
	return check->kind == CHECK_MASK_DIRECTORY || check->kind == CHECK_MASK_FILE ||
	       check->kind == CHECK_PIN;
}

int verify_checks(const struct request_view *view, char *text, size_t size)
{
	const struct request_check *checks = request_checks(view);
	const char *path, *wrong;
	uint32_t number;
	int fd;

	for (number = 0; number < view->request->check_count; number++) {
		path = request_string(view, checks[number].path);
		fd = open_canonical(path, O_PATH);
		if (fd >= 0) {
			wrong = check_object(&checks[number], fd, path);
			close(fd);
		} else if (errno == EACCES && is_mask(&checks[number])) {
			wrong = NULL; /* what cannot be reached needs no mask */
		} else {
			wrong = strerror(errno);
		}
		if (wrong != NULL) {
			snprintf(text, size, "the sandbox is not what was asked for: %.400s: %s", path, wrong);
			return -1;
		}
	}
	return 0;
}
