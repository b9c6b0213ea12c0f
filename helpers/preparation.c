#include "preparation.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ending.h"
#include "protocol.h"

static int make_pipe(struct stream *stream, int *write_end)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	stream->pipe = ends[0];
	*write_end = ends[1];
	return fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

int preparation_channels(struct supervisor *self)
{
	struct stream stream = { .pipe = -1, .limit = self->view.request->capture_limit };
	const int yes = 1;
	sigset_t watched;
	int ends[2];

	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	sigaddset(&watched, SIGTERM);
	self->signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	self->streams[0] = self->streams[1] = stream;
	self->streams[0].file = SUPERVISOR_OUTPUT;
	self->streams[1].file = SUPERVISOR_ERROR;
	self->sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (self->sink < 0 || self->signals < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	self->inner = ends[0];
	self->launch.control = ends[1];
	if (setsockopt(self->inner, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) < 0)
		return -1;
	if (make_pipe(&self->streams[0], &self->launch.output) < 0)
		return -1;
	self->launch.error = self->launch.output;
	if (!supervisor_asks(self, REQUEST_MERGE) &&
	    make_pipe(&self->streams[1], &self->launch.error) < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	self->words = ends[0];
	self->launch.words_of_its_own = ends[1];
	/* The launcher writes to it as to any standard error. */
	return fcntl(ends[1], F_SETFL, 0);
}

void preparation_close_child_ends(struct supervisor *self)
{
	close(self->launch.control);
	close(self->launch.output);
	if (self->launch.error != self->launch.output)
		close(self->launch.error);
	close(self->launch.words_of_its_own);
	/* The command's standard input is not ours: a pipe must end when the command closes it. */
	close(SUPERVISOR_STDIN);
}

/* What the core could not know: the object that stands at a claimed path. */
static void complete(struct supervisor *self, const struct request_claim *wanted,
                     const struct claim *claim)
{
	if (wanted->check != UINT32_MAX) {
		struct request_check *check = &request_checks(&self->view)[wanted->check];

		check->device = claim->device;
		check->inode = claim->inode;
	}
	if (wanted->mount != UINT32_MAX) {
		struct request_mount *mount = &request_mounts(&self->view)[wanted->mount];

		mount->device = mount->place_device = claim->device;
		mount->inode = mount->place_inode = claim->inode;
	}
}

/* Only a private home is something of our own that goes over a placeholder. */
static bool is_home(struct supervisor *self, const struct request_claim *wanted)
{
	return wanted->check != UINT32_MAX &&
	       request_checks(&self->view)[wanted->check].kind == CHECK_PRIVATE;
}

static int no_claim(struct supervisor *self, const struct request_claim *wanted, const char *path)
{
	bool home = is_home(self, wanted);

	ending_fail(self, home ? "home" : "claim", errno, "cannot %s %s: %s",
	            home ? "make the private home" : "protect the missing", path, strerror(errno));
	return -1;
}

int preparation_claims(struct supervisor *self)
{
	const struct request *request = self->view.request;
	uint32_t number;

	for (number = 0; number < request->claim_count; number++) {
		const struct request_claim *wanted = &request_claims(&self->view)[number];
		const char *path = request_string(&self->view, wanted->path);
		struct claim *claim = &self->claims[self->claim_count];
		int result;

		if (self->claim_count == CLAIMS_MOST) {
			ending_fail(self, "claim", E2BIG, "more than %d protected names are missing",
			            (int)CLAIMS_MOST);
			return -1;
		}
		result = claim_take(claim, path);
		if (result < 0)
			return no_claim(self, wanted, path);
		complete(self, wanted, claim);
		if (result == CLAIM_HELD)
			self->claim_count++;
	}
	return 0;
}

int preparation_home(struct supervisor *self)
{
	const char *path = request_string(&self->view, self->view.request->home);

	if (self->view.request->home == 0 || home_make(&self->home, path) == 0)
		return 0;
	ending_fail(self, "home", errno, "cannot make the private home %s: %s", path, strerror(errno));
	return -1;
}

/* The descriptors that carry locks, in LOCKS; how many there are. */
static unsigned list_locks(const struct supervisor *self, int locks[LOCKS_MOST])
{
	unsigned count;

	for (count = 0; count < self->claim_count; count++)
		locks[count] = self->claims[count].directory;
	if (self->home.directory >= 0)
		locks[count++] = self->home.directory;
	return count;
}

int preparation_settings(struct supervisor *self)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(LOCKS_MOST * sizeof(int))];
	} control;
	struct order order = {
		.type = ORDER_SETTINGS,
		.umask = self->launch.mask,
		.files_soft = self->launch.files.rlim_cur,
		.files_hard = self->launch.files.rlim_max,
	};
	struct iovec part = { .iov_base = &order, .iov_len = sizeof order };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *header;
	int locks[LOCKS_MOST];
	unsigned count = list_locks(self, locks);

	if (count > 0) {
		memset(&control, 0, sizeof control);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(header), locks, count * sizeof(int));
	}
	return sendmsg(self->inner, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}
