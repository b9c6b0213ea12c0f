#include "network.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "descriptor.h"
#include "filter_wire.h"
#include "request.h"

/* A memory file whose size is fixed with `seal`, so that who maps it can rely on that. */
static int memory_file(const char *name)
{
	return descriptor_lift(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

static int seal(int fd, int more)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | more);
}

static size_t strings_size(const struct strings *strings)
{
	size_t i, size = 0;

	for (i = 0; i < strings->count; i++)
		size += strlen(strings->items[i]) + 1;
	return size;
}

static int put(int fd, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length > 0) {
		ssize_t written = write(fd, at, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return -1;
		at += written;
		length -= (size_t)written;
	}
	return 0;
}

static int put_strings(int fd, const struct strings *strings)
{
	size_t i;

	for (i = 0; i < strings->count; i++)
		if (put(fd, strings->items[i], strlen(strings->items[i]) + 1) < 0)
			return -1;
	return 0;
}

static int write_config(int fd, const struct policy *policy, const char *nameservers)
{
	const struct strings *allow = &policy->network_allow, *deny = &policy->network_deny;
	size_t size = sizeof(struct filter_config) + strlen(nameservers) + 1 + strings_size(allow) +
	              strings_size(deny);
	struct filter_config config = { .magic = FILTER_MAGIC,
		                            .version = FILTER_VERSION,
		                            .allow_count = (uint32_t)allow->count,
		                            .deny_count = (uint32_t)deny->count,
		                            .size = (uint32_t)size };

	if (size > UINT32_MAX) {
		errno = E2BIG;
		return -1;
	}
	return put(fd, &config, sizeof config) < 0 ||
	               put(fd, nameservers, strlen(nameservers) + 1) < 0 ||
	               put_strings(fd, allow) < 0 || put_strings(fd, deny) < 0 ||
	               lseek(fd, 0, SEEK_SET) < 0
	           ? -1
	           : seal(fd, F_SEAL_WRITE);
}

int network_open(struct network *network, const struct policy *policy, const char *nameservers,
                 struct failure *failure)
{
	network->config = memory_file("execsandbox-filter");
	network->report = memory_file("execsandbox-report");
	if (network->config >= 0 && network->report >= 0 &&
	    write_config(network->config, policy, nameservers) == 0 &&
	    ftruncate(network->report, sizeof(struct filter_report)) == 0 &&
	    seal(network->report, 0) == 0)
		return 0;
	failure_set_execution(failure, "proxy", errno,
	                      "cannot write the filtering proxy's configuration: %s", strerror(errno));
	network_close(network);
	return -1;
}

int network_send(struct network *network, int control, struct failure *failure)
{
	const int files[] = { network->config, network->report };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof files)];
	} rights;
	struct command command = { COMMAND_FILTER, 0 };
	struct iovec part = { .iov_base = &command, .iov_len = sizeof command };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights
	};
	struct cmsghdr *header;

	if (network->config < 0)
		return 0;
	memset(&rights, 0, sizeof rights);
	header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof files);
	memcpy(CMSG_DATA(header), files, sizeof files);
	if (sendmsg(control, &message, MSG_NOSIGNAL) < 0)
		return failure_execution(failure, "helper", errno, "cannot speak to the helper: %s",
		                         strerror(errno));
	close(network->config);
	network->config = -1;
	return 0;
}

static void push_entry(lua_State *L, const struct filter_entry *entry)
{
	lua_createtable(L, 0, 4);
	lua_pushlstring(L, entry->host, strnlen(entry->host, sizeof entry->host));
	lua_setfield(L, -2, "host");
	lua_pushinteger(L, entry->port);
	lua_setfield(L, -2, "port");
	lua_pushinteger(L, (lua_Integer)entry->count);
	lua_setfield(L, -2, "count");
	lua_pushinteger(L, (lua_Integer)entry->bytes);
	lua_setfield(L, -2, "bytes");
}

struct head {
	uint32_t magic, count;
	uint64_t dropped;
};

/* Read, not mapped: what a subverted proxy does to the file must not reach this process. */
static struct head read_head(const struct network *network)
{
	struct head head;

	_Static_assert(offsetof(struct filter_report, entries) == sizeof head, "as in the report");
	if (pread(network->report, &head, sizeof head, 0) != (ssize_t)sizeof head ||
	    head.magic != FILTER_MAGIC)
		return (struct head){ 0, 0, 0 };
	if (head.count > FILTER_ENTRIES)
		head.count = FILTER_ENTRIES;
	return head;
}

static void push_entries(lua_State *L, const struct network *network, uint32_t verdict)
{
	uint32_t i, count = read_head(network).count;
	struct filter_entry entry;
	int pushed = 0;

	lua_newtable(L);
	for (i = 0; i < count; i++) {
		off_t at = (off_t)(offsetof(struct filter_report, entries) + i * sizeof entry);

		if (pread(network->report, &entry, sizeof entry, at) != (ssize_t)sizeof entry)
			break;
		if (entry.verdict != verdict)
			continue;
		push_entry(L, &entry);
		lua_rawseti(L, -2, ++pushed);
	}
}

void network_push(lua_State *L, const struct network *network)
{
	if (network->report < 0) {
		lua_pushnil(L);
		return;
	}
	lua_newtable(L);
	push_entries(L, network, FILTER_ALLOWED);
	lua_setfield(L, -2, "allowed");
	push_entries(L, network, FILTER_DENIED);
	lua_setfield(L, -2, "denied");
	lua_pushinteger(L, (lua_Integer)read_head(network).dropped);
	lua_setfield(L, -2, "dropped");
}

void network_close(struct network *network)
{
	if (network->config >= 0)
		close(network->config);
	if (network->report >= 0)
		close(network->report);
	network->config = network->report = -1;
}
