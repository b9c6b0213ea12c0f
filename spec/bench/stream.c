/*
 * A server and clients that move bytes over TCP, for proxy_bench.lua:
 *
 *   stream serve              listens at 127.0.0.1, prints the port, ends with its standard input
 *   stream up PORT BYTES      sends them, waits until they have arrived, prints the seconds
 *   stream down PORT BYTES    receives as many, likewise
 *   stream many PORT COUNT    as many connections at once, each with an answer; prints how many failed
 *
 * cc: -pthread
 */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 256 * 1024, MANY_BYTES = 10000, PATIENCE_MS = 30000 };

struct wish {
	char what; /* 'u', 'd' or 'e' */
	uint64_t bytes;
} __attribute__((packed));

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static int read_all(int fd, void *bytes, size_t length)
{
	char *at = bytes;

	while (length > 0) {
		ssize_t got = read(fd, at, length);

		if (got <= 0)
			return -1;
		at += got;
		length -= (size_t)got;
	}
	return 0;
}

static int write_all(int fd, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length > 0) {
		ssize_t put = write(fd, at, length);

		if (put <= 0)
			return -1;
		at += put;
		length -= (size_t)put;
	}
	return 0;
}

/* Returns how many bytes came before the end. */
static uint64_t swallow(int fd)
{
	static _Thread_local char block[BLOCK];
	uint64_t total = 0;
	ssize_t got;

	while ((got = read(fd, block, sizeof block)) > 0)
		total += (uint64_t)got;
	return total;
}

static int emit(int fd, uint64_t bytes)
{
	static char block[BLOCK];

	while (bytes > 0) {
		size_t part = bytes < sizeof block ? (size_t)bytes : sizeof block;

		if (write_all(fd, block, part) < 0)
			return -1;
		bytes -= part;
	}
	return 0;
}

/* ---- the server ------------------------------------------------------------------------------- */

static void *handle(void *argument)
{
	int fd = (int)(intptr_t)argument;
	char bytes[MANY_BYTES];
	struct wish wish;

	if (read_all(fd, &wish, sizeof wish) == 0) {
		if (wish.what == 'u' && swallow(fd) == wish.bytes)
			write_all(fd, "y", 1);
		else if (wish.what == 'd')
			emit(fd, wish.bytes);
		else if (wish.what == 'e' && read_all(fd, bytes, sizeof bytes) == 0)
			write_all(fd, bytes, sizeof bytes);
	}
	close(fd);
	return NULL;
}

static void *accept_all(void *argument)
{
	int listener = (int)(intptr_t)argument;
	pthread_t thread;

	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0 && pthread_create(&thread, NULL, handle, (void *)(intptr_t)fd) == 0)
			pthread_detach(thread);
	}
	return NULL;
}

static int serve(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t thread;
	char byte;

	if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) < 0 ||
	    listen(listener, 1000) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &length) < 0)
		die("listen");
	printf("%u\n", ntohs(address.sin_port));
	fflush(stdout);
	pthread_create(&thread, NULL, accept_all, (void *)(intptr_t)listener);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}

/* ---- the clients -------------------------------------------------------------------------------- */

static int dial(unsigned port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                           .sin_port = htons((uint16_t)port),
		                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		die("connect");
	return fd;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int transfer(char what, unsigned port, uint64_t bytes)
{
	const struct wish wish = { what, bytes };
	double begin = now();
	int fd = dial(port);
	char answer = 0;

	if (write_all(fd, &wish, sizeof wish) < 0)
		die("write");
	if (what == 'u') {
		if (emit(fd, bytes) < 0 || shutdown(fd, SHUT_WR) < 0 || read(fd, &answer, 1) != 1)
			die("up");
	} else if (swallow(fd) != bytes) {
		fprintf(stderr, "cut short\n");
		return 1;
	}
	printf("%.6f\n", now() - begin);
	return 0;
}

static int many(unsigned port, unsigned count)
{
	const struct wish wish = { 'e', 0 };
	struct rlimit files;
	char bytes[MANY_BYTES], answer[MANY_BYTES];
	int *fds = calloc(count, sizeof *fds);
	unsigned number, failed = 0;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	for (number = 0; number < count; number++)
		fds[number] = dial(port);
	for (number = 0; number < count; number++) {
		memset(bytes, (int)number, sizeof bytes);
		if (write_all(fds[number], &wish, sizeof wish) < 0 ||
		    write_all(fds[number], bytes, sizeof bytes) < 0)
			perror("write");
	}
	for (number = 0; number < count; number++) {
		struct pollfd wait = { .fd = fds[number], .events = POLLIN };

		memset(bytes, (int)number, sizeof bytes);
		if (poll(&wait, 1, PATIENCE_MS) <= 0 || read_all(fds[number], answer, sizeof answer) < 0 ||
		    memcmp(bytes, answer, sizeof answer) != 0)
			failed++;
	}
	printf("%u\n", failed);
	free(fds);
	return 0;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && strcmp(argv[1], "serve") == 0)
		return serve();
	if (argc == 4 && strcmp(argv[1], "up") == 0)
		return transfer('u', (unsigned)atoi(argv[2]), strtoull(argv[3], NULL, 10));
	if (argc == 4 && strcmp(argv[1], "down") == 0)
		return transfer('d', (unsigned)atoi(argv[2]), strtoull(argv[3], NULL, 10));
	if (argc == 4 && strcmp(argv[1], "many") == 0)
		return many((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	fprintf(stderr, "usage: stream serve | up PORT BYTES | down PORT BYTES | many PORT COUNT\n");
	return 2;
}
