#include "request_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A request grows in one block; offsets stay valid when it moves. */
struct block {
	unsigned char *bytes;
	size_t length;
	size_t capacity;
	bool failed; /* out of memory, or past what 32 bits can address */
};

static uint32_t reserve(struct block *block, size_t size)
{
	size_t start = (block->length + 7) / 8 * 8;
	size_t end = start + size;

	if (block->failed || end < start || end > UINT32_MAX / 2) {
		block->failed = true;
		return 0;
	}
	if (end > block->capacity) {
		size_t capacity = block->capacity == 0 ? 8192 : block->capacity;
		unsigned char *bytes;

		while (capacity < end)
			capacity *= 2;
		bytes = realloc(block->bytes, capacity);
		if (bytes == NULL) {
			block->failed = true;
			return 0;
		}
		block->bytes = bytes;
		block->capacity = capacity;
	}
	memset(block->bytes + block->length, 0, end - block->length);
	block->length = end;
	return (uint32_t)start;
}

static uint32_t put_string(struct block *block, const char *text)
{
	size_t size = strlen(text) + 1;
	uint32_t offset = reserve(block, size);

	if (!block->failed)
		memcpy(block->bytes + offset, text, size);
	return offset;
}

static struct request_list put_list(struct block *block, const struct words *words)
{
	struct request_list list = { { 0, 0 }, 0, 0 };
	size_t i, size = 0;
	unsigned char *end;

	if (words == NULL || words->count == 0)
		return list;
	for (i = 0; i < words->count; i++)
		size += strlen(words->items[i]) + 1;
	list.bytes.offset = reserve(block, size);
	if (block->failed)
		return list;
	list.bytes.length = (uint32_t)size;
	list.count = (uint32_t)words->count;
	end = block->bytes + list.bytes.offset;
	for (i = 0; i < words->count; i++) {
		size_t length = strlen(words->items[i]) + 1;
		memcpy(end, words->items[i], length);
		end += length;
	}
	return list;
}

static enum check_kind check_of(const struct mount *mount)
{
	switch (mount->kind) {
	case MOUNT_BIND_READ:
		return CHECK_BIND_READ;
	case MOUNT_MASK_DIRECTORY:
		return CHECK_MASK_DIRECTORY;
	case MOUNT_MASK_FILE:
		return CHECK_MASK_FILE;
	case MOUNT_PIN:
		return CHECK_PIN;
	case MOUNT_PRIVATE:
		return CHECK_PRIVATE;
	default:
		return CHECK_BIND_WRITE;
	}
}

/*
 * What a bind shows can only be checked against an object that was seen; one that a
 * claim makes is seen by the supervisor, which completes the check.
 */
static bool can_check(const struct mount *mount)
{
	if (!mount->checked)
		return false;
	if (mount->kind == MOUNT_BIND_READ || mount->kind == MOUNT_BIND_WRITE ||
	    mount->kind == MOUNT_BIND_DEVICE)
		return mount->claim != NULL || mount->inode != 0;
	return true;
}

static void describe(struct request_mount *out, const struct mount *mount)
{
	switch (mount->kind) {
	case MOUNT_BASE:
		out->kind = VIEW_FRESH;
		out->flags = VIEW_READ_ONLY;
		out->mode = 0755;
		break;
	case MOUNT_BIND_READ:
		out->kind = VIEW_BIND;
		out->flags = VIEW_READ_ONLY;
		break;
	case MOUNT_BIND_WRITE:
	case MOUNT_PIN:
		out->kind = VIEW_BIND;
		break;
	case MOUNT_BIND_DEVICE:
		out->kind = VIEW_BIND;
		out->flags = VIEW_DEVICES;
		break;
	case MOUNT_MASK_DIRECTORY:
		out->kind = mount->reopened ? VIEW_FRESH : VIEW_MASK;
		out->flags = mount->reopened ? VIEW_READ_ONLY : 0;
		out->mode = 0111;
		break;
	case MOUNT_MASK_FILE:
		out->kind = VIEW_MASK_FILE;
		out->flags = VIEW_IS_FILE;
		break;
	case MOUNT_PRIVATE:
		out->kind = VIEW_FRESH;
		break;
	case MOUNT_DEV:
		out->kind = VIEW_DEV;
		out->flags = VIEW_READ_ONLY;
		break;
	case MOUNT_PROC:
		out->kind = VIEW_PROC;
		break;
	case MOUNT_DIRECTORY:
		out->kind = VIEW_DIRECTORY;
		break;
	case MOUNT_LINK:
		out->kind = VIEW_LINK;
		break;
	}
}

/* The mounts for a view that the inner stage builds. */
static void put_view(struct block *block, struct request *header, const struct mounts *mounts)
{
	size_t i;

	header->mounts = reserve(block, mounts->count * sizeof(struct request_mount));
	header->mount_count = (uint32_t)mounts->count;
	for (i = 0; i < mounts->count && !block->failed; i++) {
		const struct mount *mount = &mounts->items[i];
		struct request_mount out = { .mode = mount->mode,
			                         .device = mount->device,
			                         .inode = mount->inode,
			                         .place_device = mount->place_device,
			                         .place_inode = mount->place_inode };

		describe(&out, mount);
		if (mount->made)
			out.flags |= VIEW_MADE;
		if (mount->is_file)
			out.flags |= VIEW_IS_FILE;
		out.path = put_string(block, mount->path);
		if (mount->source != NULL)
			out.source = put_string(block, mount->source);
		if (!block->failed)
			memcpy(block->bytes + header->mounts + i * sizeof out, &out, sizeof out);
	}
}

static void put_mounts(struct block *block, struct request *header, const struct mounts *mounts)
{
	bool viewed = (header->flags & REQUEST_VIEW) != 0;
	size_t i, checks = 0, claims = 0;

	for (i = 0; i < mounts->count; i++)
		claims += mounts->items[i].claim != NULL;
	header->checks = reserve(block, mounts->count * sizeof(struct request_check));
	header->claims = reserve(block, claims * sizeof(struct request_claim));
	for (i = 0, claims = 0; i < mounts->count && !block->failed; i++) {
		const struct mount *mount = &mounts->items[i];
		bool checked = can_check(mount);
		uint32_t path = checked ? put_string(block, mount->path) : 0;
		uint32_t place = mount->claim != NULL ? put_string(block, mount->claim) : 0;

		if (block->failed)
			return;
		if (mount->claim != NULL) {
			struct request_claim claim = { place, checked ? (uint32_t)checks : UINT32_MAX,
				                           viewed ? (uint32_t)i : UINT32_MAX, 0 };
			memcpy(block->bytes + header->claims + claims++ * sizeof claim, &claim, sizeof claim);
		}
		if (checked) {
			struct request_check check = { (uint32_t)check_of(mount), path, (uint64_t)mount->device,
				                           (uint64_t)mount->inode };
			memcpy(block->bytes + header->checks + checks++ * sizeof check, &check, sizeof check);
		}
	}
	header->check_count = (uint32_t)checks;
	header->claim_count = (uint32_t)claims;
}

static void put_proxies(struct block *block, struct request *header,
                        const struct request_input *input)
{
	size_t size = input->proxy_count * sizeof *input->proxies;

	if (input->proxy_count == 0)
		return;
	header->proxies = reserve(block, size);
	header->proxy_count = (uint32_t)input->proxy_count;
	if (!block->failed)
		memcpy(block->bytes + header->proxies, input->proxies, size);
	if (input->filter_program != NULL)
		header->filter_program = put_string(block, input->filter_program);
}

static void fill(struct block *block, const struct request_input *input)
{
	struct request header = input->fixed;

	reserve(block, sizeof header);
	header.magic = REQUEST_MAGIC;
	header.version = REQUEST_VERSION;
	header.argv = put_list(block, input->argv);
	header.environment = put_list(block, input->environment);
	header.launcher = put_list(block, input->launcher);
	header.arguments = put_list(block, input->arguments);
	header.cwd = put_string(block, input->cwd);
	if (input->inner_path != NULL)
		header.inner_path = put_string(block, input->inner_path);
	if (input->home != NULL)
		header.home = put_string(block, input->home);
	if (input->mounts != NULL)
		put_mounts(block, &header, input->mounts);
	if (input->mounts != NULL && (header.flags & REQUEST_VIEW))
		put_view(block, &header, input->mounts);
	put_proxies(block, &header, input);
	if (block->failed)
		return;
	header.size = (uint32_t)block->length;
	memcpy(block->bytes, &header, sizeof header);
}

static int write_all(int fd, const unsigned char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -1;
		bytes += written;
		length -= (size_t)written;
	}
	return 0;
}

int request_build(const struct request_input *input, struct failure *failure)
{
	struct block block = { NULL, 0, 0, false };
	int fd;

	fill(&block, input);
	if (block.failed) {
		free(block.bytes);
		return failure_memory(failure);
	}
	fd = memfd_create("execsandbox-request", MFD_CLOEXEC);
	if (fd < 0 || write_all(fd, block.bytes, block.length) < 0) {
		failure_execution(failure, "request", errno, "cannot write the request to the helper: %s",
		                  strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	explicit_bzero(block.bytes, block.length); /* it holds the environment */
	free(block.bytes);
	return fd;
}
