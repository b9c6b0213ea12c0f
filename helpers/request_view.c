#include "request_view.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
	REQUEST_LARGEST = 256 * 1024 * 1024,
	STRINGS_MOST = 4 * 1024 * 1024,
	EMPTY_FILES_MOST = 1 << 20,
};

#define KNOWN_FLAGS (((unsigned)REQUEST_PROXY << 1) - 1)

/* Whether COUNT elements of SIZE bytes at OFFSET lie in the request, after its header. */
static bool inside(const struct request_view *view, uint32_t offset, uint64_t count, uint64_t size)
{
	uint64_t length = count * size; /* no overflow: 32 bits each */

	return offset >= sizeof(struct request) && offset <= view->size &&
	       length <= view->size - offset;
}

static bool apart(uint64_t offset, uint64_t length, uint64_t start, uint64_t size)
{
	return size == 0 || length == 0 || offset >= start + size || offset + length <= start;
}

/*
 * Checks and mounts are completed (devices and inodes are written) after this inspection:
 * nothing else that was inspected may share bytes with them.
 */
static bool apart_from_completed(const struct request_view *view, uint64_t offset, uint64_t length)
{
	const struct request *request = view->request;

	return apart(offset, length, request->checks,
	             (uint64_t)request->check_count * sizeof(struct request_check)) &&
	       apart(offset, length, request->mounts,
	             (uint64_t)request->mount_count * sizeof(struct request_mount));
}

static bool string_ok(const struct request_view *view, uint32_t offset)
{
	const char *start, *end;

	if (!inside(view, offset, 1, 1))
		return false;
	start = (const char *)view->request + offset;
	end = memchr(start, '\0', view->size - offset);
	return end != NULL && apart_from_completed(view, offset, (uint64_t)(end - start) + 1);
}

static bool path_ok(const struct request_view *view, uint32_t offset)
{
	return string_ok(view, offset) && *request_string(view, offset) == '/';
}

static bool list_ok(const struct request_view *view, const struct request_list *list)
{
	const char *bytes, *end;
	uint32_t count = 0;

	if (list->bytes.length == 0)
		return list->count == 0;
	if (!inside(view, list->bytes.offset, list->bytes.length, 1) ||
	    !apart_from_completed(view, list->bytes.offset, list->bytes.length) ||
	    list->count > STRINGS_MOST)
		return false;
	bytes = request_bytes(view, list);
	end = bytes + list->bytes.length;
	if (end[-1] != '\0')
		return false;
	while (bytes < end) {
		bytes += strlen(bytes) + 1;
		count++;
	}
	return count == list->count;
}

static bool environment_ok(const struct request_view *view)
{
	const struct request_list *list = &view->request->environment;
	const char *bytes, *end;

	if (!list_ok(view, list))
		return false;
	if (list->count == 0)
		return true;
	bytes = request_bytes(view, list);
	for (end = bytes + list->bytes.length; bytes < end; bytes += strlen(bytes) + 1) {
		if (strchr(bytes, '=') == NULL)
			return false;
	}
	return true;
}

static bool launcher_ok(const struct request_view *view)
{
	const struct request *request = view->request;

	if (!list_ok(view, &request->launcher) || !list_ok(view, &request->arguments))
		return false;
	if (request->empty_files > EMPTY_FILES_MOST)
		return false;
	if (request->inner_path != 0 && !path_ok(view, request->inner_path))
		return false;
	if (request->flags & REQUEST_DIRECT)
		return request->launcher.count == 0 && !(request->flags & REQUEST_PID_NAMESPACE);
	return request->launcher.count > 0 && *request_bytes(view, &request->launcher) == '/';
}

static bool claims_ok(const struct request_view *view)
{
	const struct request *request = view->request;
	uint32_t number;

	if (request->claim_count == 0)
		return true;
	if (request->claims % 8 != 0 ||
	    !inside(view, request->claims, request->claim_count, sizeof(struct request_claim)) ||
	    !apart_from_completed(view, request->claims,
	                          (uint64_t)request->claim_count * sizeof(struct request_claim)))
		return false;
	for (number = 0; number < request->claim_count; number++) {
		const struct request_claim *claim = &request_claims(view)[number];

		if (!path_ok(view, claim->path))
			return false;
		if (claim->check != UINT32_MAX && claim->check >= request->check_count)
			return false;
		if (claim->mount != UINT32_MAX && claim->mount >= request->mount_count)
			return false;
	}
	return true;
}

static bool array_ok(const struct request_view *view, uint32_t offset, uint32_t count, size_t size)
{
	return count == 0 || (offset % 8 == 0 && inside(view, offset, count, size));
}

/* First of all: the others rely on where these two are. */
static bool completed_placed(const struct request_view *view)
{
	const struct request *request = view->request;

	return array_ok(view, request->checks, request->check_count, sizeof(struct request_check)) &&
	       array_ok(view, request->mounts, request->mount_count, sizeof(struct request_mount)) &&
	       apart(request->checks, (uint64_t)request->check_count * sizeof(struct request_check),
	             request->mounts, (uint64_t)request->mount_count * sizeof(struct request_mount));
}

static bool mount_ok(const struct request_view *view, const struct request_mount *mount)
{
	if (mount->kind > VIEW_LINK || (mount->mode & ~07777u) != 0 || !path_ok(view, mount->path))
		return false;
	if (mount->kind == VIEW_BIND)
		return path_ok(view, mount->source);
	return mount->kind != VIEW_LINK || string_ok(view, mount->source);
}

static bool mounts_ok(const struct request_view *view)
{
	const struct request *request = view->request;
	uint32_t number;

	if (!(request->flags & REQUEST_VIEW))
		return request->mount_count == 0;
	if (request->mount_count == 0 || (request->flags & REQUEST_DIRECT))
		return false;
	for (number = 0; number < request->mount_count; number++)
		if (!mount_ok(view, &request_mounts(view)[number]))
			return false;
	/* The root comes first, and once. */
	return strcmp(request_string(view, request_mounts(view)[0].path), "/") == 0;
}

static bool checks_ok(const struct request_view *view)
{
	uint32_t number;

	for (number = 0; number < view->request->check_count; number++) {
		const struct request_check *check = &request_checks(view)[number];

		if (check->kind > CHECK_PRIVATE || !path_ok(view, check->path))
			return false;
	}
	return true;
}

/* 127.0.0.0/8 or ::1: no other address is ever listened at, or dialled. */
static bool is_loopback(const uint8_t *bytes)
{
	struct in6_addr address;

	memcpy(&address, bytes, sizeof address);
	return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && bytes[12] == 127);
}

static bool proxy_ok(const struct request_view *view, const struct request_proxy *proxy)
{
	uint32_t number;

	if (proxy->flags & ~(unsigned)PROXY_OPTIONAL)
		return false;
	if (!is_loopback(proxy->inside) || proxy->inside_port == 0)
		return false;
	if (proxy->kind == PROXY_FILTER)
		return proxy->outside_count == 0 && path_ok(view, view->request->filter_program);
	if (proxy->kind != PROXY_RELAY || proxy->outside_port == 0 || proxy->outside_count == 0 ||
	    proxy->outside_count > PROXY_ADDRESSES)
		return false;
	for (number = 0; number < proxy->outside_count; number++)
		if (!is_loopback(proxy->outside[number]))
			return false;
	return true;
}

static bool proxies_ok(const struct request_view *view)
{
	const struct request *request = view->request;
	uint64_t length = (uint64_t)request->proxy_count * sizeof(struct request_proxy);
	uint32_t number;

	if (((request->flags & REQUEST_PROXY) != 0) != (request->proxy_count > 0))
		return false;
	if (request->proxy_count == 0)
		return true;
	if (request->proxy_count > PROXIES_MOST || (request->flags & REQUEST_DIRECT) ||
	    !array_ok(view, request->proxies, request->proxy_count, sizeof(struct request_proxy)) ||
	    !apart_from_completed(view, request->proxies, length))
		return false;
	for (number = 0; number < request->proxy_count; number++)
		if (!proxy_ok(view, &request_proxies(view)[number]))
			return false;
	return true;
}

static const char *inspect(const struct request_view *view)
{
	const struct request *request = view->request;

	if (request->magic != REQUEST_MAGIC || request->version != REQUEST_VERSION)
		return "the helper and the core are of different versions";
	if (request->size != view->size)
		return "the request is cut short";
	if ((request->flags & ~KNOWN_FLAGS) != 0)
		return "the request has unknown flags";
	if (!completed_placed(view))
		return "the request's checks or mounts are malformed";
	if (!list_ok(view, &request->argv) || request->argv.count == 0)
		return "the request's arguments are malformed";
	if (!environment_ok(view))
		return "the request's environment is malformed";
	if (!path_ok(view, request->cwd))
		return "the request's working directory is malformed";
	if (!launcher_ok(view))
		return "the request's launcher is malformed";
	if (request->home != 0 && (!path_ok(view, request->home) || !(request->flags & REQUEST_DIRECT)))
		return "the request's private home is malformed";
	if (!claims_ok(view))
		return "the request's claims are malformed";
	if (!checks_ok(view))
		return "the request's checks are malformed";
	if (!mounts_ok(view))
		return "the request's mounts are malformed";
	if (!proxies_ok(view))
		return "the request's proxies are malformed";
	return NULL;
}

const char *request_view_open(struct request_view *view, int fd)
{
	const char *wrong;
	struct stat status;
	void *memory;

	view->request = NULL;
	view->size = 0;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return "the request is no memory file";
	if (status.st_size < (off_t)sizeof(struct request) || status.st_size > REQUEST_LARGEST)
		return "the request has an impossible size";
	/* All of it is read: one call instead of a fault for every page. */
	memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
	              fd, 0);
	if (memory == MAP_FAILED)
		return "the request cannot be mapped";
	view->request = memory;
	view->size = (size_t)status.st_size;
	wrong = inspect(view);
	if (wrong != NULL) {
		munmap(memory, view->size);
		view->request = NULL;
	}
	return wrong;
}

const char *request_string(const struct request_view *view, uint32_t offset)
{
	return (const char *)view->request + offset;
}

const char *request_bytes(const struct request_view *view, const struct request_list *list)
{
	return (const char *)view->request + list->bytes.offset;
}

const struct request_claim *request_claims(const struct request_view *view)
{
	return (const void *)((const char *)view->request + view->request->claims);
}

const struct request_proxy *request_proxies(const struct request_view *view)
{
	return (const void *)((const char *)view->request + view->request->proxies);
}

struct request_mount *request_mounts(const struct request_view *view)
{
	return (struct request_mount *)((char *)view->request + view->request->mounts);
}

struct request_check *request_checks(const struct request_view *view)
{
	return (void *)((char *)view->request + view->request->checks);
}

char **request_vector(const struct request_view *view, const struct request_list *list,
                      size_t extra, size_t *count)
{
	/* execve's prototype has no const; nothing writes to the strings. */
	char *bytes = (char *)view->request + list->bytes.offset;
	char *end = bytes + list->bytes.length;
	size_t size = (list->count + extra + 1) * sizeof(char *);
	size_t number = 0;
	char **vector;

	/* Anonymous memory is zero: the NULL at the end is there. */
	vector =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (vector == MAP_FAILED)
		return NULL;
	for (; bytes < end && number < list->count; bytes += strlen(bytes) + 1)
		vector[number++] = bytes;
	if (count != NULL)
		*count = number;
	return vector;
}
