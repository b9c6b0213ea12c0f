#include "ready.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "descriptor.h"

#define NS_PER_SECOND 1000000000u

static int watch(const struct ready *ready, int operation, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data = { .fd = fd } };

	return epoll_ctl(ready->epoll, operation, fd, &event);
}

static int start_ticks(struct ready *ready, uint64_t interval)
{
	const struct timespec step = { (time_t)(interval / NS_PER_SECOND),
		                           (long)(interval % NS_PER_SECOND) };
	const struct itimerspec times = { .it_interval = step, .it_value = step };

	ready->timer = descriptor_lift(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	if (ready->timer < 0 || timerfd_settime(ready->timer, 0, &times, NULL) < 0)
		return -1;
	return watch(ready, EPOLL_CTL_ADD, ready->timer, EPOLLIN);
}

static int watch_all(struct ready *ready, uint64_t interval, int writer)
{
	ready->epoll = descriptor_lift(epoll_create1(EPOLL_CLOEXEC));
	if (ready->epoll < 0 || watch(ready, EPOLL_CTL_ADD, ready->control, EPOLLIN) < 0)
		return -1;
	if (interval > 0 && start_ticks(ready, interval) < 0)
		return -1;
	/* Without any event its end is still told (epoll_ctl(2), EPOLLERR). */
	return writer < 0 ? 0 : watch(ready, EPOLL_CTL_ADD, writer, 0);
}

int ready_open(struct ready *ready, int control, uint64_t interval, int writer,
               struct failure *failure)
{
	*ready = (struct ready){ control, -1, -1 };
	if (interval == 0 && writer < 0)
		return 0;
	if (watch_all(ready, interval, writer) == 0)
		return 0;
	failure_execution(failure, "helper", errno, "cannot watch the run's descriptors: %s",
	                  strerror(errno));
	ready_close(ready);
	return -1;
}

void ready_stop_ticks(struct ready *ready)
{
	if (ready->timer < 0)
		return;
	/* Closing would do, unless a process that the host forked holds a copy. */
	watch(ready, EPOLL_CTL_DEL, ready->timer, 0);
	close(ready->timer);
	ready->timer = -1;
}

void ready_close(struct ready *ready)
{
	ready_stop_ticks(ready);
	if (ready->epoll >= 0)
		close(ready->epoll);
	*ready = READY_NONE;
}

int ready_descriptor(const struct ready *ready)
{
	return ready->epoll >= 0 ? ready->epoll : ready->control;
}

bool ready_ticked(struct ready *ready)
{
	uint64_t times;

	return ready->timer >= 0 && read(ready->timer, &times, sizeof times) > 0;
}

void ready_want_room(const struct ready *ready, int writer, bool wanted)
{
	watch(ready, EPOLL_CTL_MOD, writer, wanted ? EPOLLOUT : 0);
}

void ready_forget(const struct ready *ready, int writer)
{
	watch(ready, EPOLL_CTL_DEL, writer, 0); /* as above */
}
