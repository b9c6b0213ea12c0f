/*
 * One program of two parts.  The first, a few instructions of our own, refuses by number what
 * is newer than libseccomp, and everything newer than this file: a system call that nobody has
 * looked at does not exist in the sandbox.  x32 numbers (bit 30 set) are too large for it.  What
 * it lets pass goes on into the second, which has the rules.
 */
#include "filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#include "../csrc/request.h"

#if defined __mips__ || defined __alpha__
#error "system calls from 424 on have other numbers here: review this file"
#endif

/* The newest system call that was considered for this file (Linux 6.18: file_setattr). */
#define NEWEST_REVIEWED 469
#define NR_OPEN_TREE_ATTR 467 /* Linux 6.15 */

/* The flags that the rules look at; a loopback of the sandbox's own has the same sockets. */
#define FILTER_FLAGS                                                                               \
	(REQUEST_NET_SOCKETS | REQUEST_NET_TCP_ONLY | REQUEST_UNIX_SOCKETS | REQUEST_ALLOW_USERNS)

enum { BY_NUMBER_MOST = 8 };

/* What libseccomp does not know, by number: equal on every machine from 424 on. */
static unsigned put_by_number(struct sock_filter *program, unsigned flags)
{
	const unsigned open_tree_attr =
		SECCOMP_RET_ERRNO | ((flags & REQUEST_ALLOW_USERNS) ? ENOSYS : EPERM);
	const struct sock_filter part[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#if defined __aarch64__ || defined __arm__
		/* 32-bit ARM keeps set_tls and others from 0xf0000 on. */
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x0f0000, 4, 0),
#endif
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, NEWEST_REVIEWED, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NR_OPEN_TREE_ATTR, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, open_tree_attr),
	};

	_Static_assert(sizeof part / sizeof *part <= BY_NUMBER_MOST, "room for the first part");
	memcpy(program, part, sizeof part);
	return sizeof part / sizeof *part;
}

/* Jumps are relative: the rules are the same behind anything that falls through into them. */
static int install(const struct filter *rules, unsigned flags)
{
	struct sock_filter instructions[BPF_MAXINSNS];
	struct sock_fprog program = { .filter = instructions };
	unsigned count;

	if (rules->count > BPF_MAXINSNS - BY_NUMBER_MOST) {
		errno = E2BIG;
		return -1;
	}
	count = put_by_number(instructions, flags);
	memcpy(instructions + count, rules->instructions, rules->count * sizeof *instructions);
	program.len = (unsigned short)(count + rules->count);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int filter_install(unsigned flags)
{
	unsigned wanted = flags & FILTER_FLAGS;
	unsigned i;

	if (flags & REQUEST_NET_LOOPBACK)
		wanted |= REQUEST_NET_SOCKETS;
	for (i = 0; i < filter_count; i++)
		if (filters[i].flags == wanted)
			return install(&filters[i], flags);
	errno = EINVAL; /* a combination that makes no sense */
	return -1;
}
