/*
 * Asks the filter itself about i386 and x32 calls, on kernels that cannot run them
 * (ia32_emulation=off) and on those that can: builds the programs that the helper installs,
 * and interprets them as the kernel would.  Prints "WHAT ANSWER" lines, where the answer is
 * "allow" or the errno.
 *
 *   filter_i386 [FLAGS]      (enum request_flag, as a number)
 *
 * cc: -lseccomp
 */
#include "../../helpers/generate/filter_build.c"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Classic BPF, as far as seccomp allows it (seccomp_check_filter). */
static unsigned run(const struct sock_filter *program, unsigned count,
                    const struct seccomp_data *data)
{
	unsigned at = 0, value = 0;

	while (at < count) {
		const struct sock_filter *step = &program[at++];
		int taken;

		switch (step->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&value, (const char *)data + step->k, 4);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			value &= step->k;
			continue;
		case BPF_JMP | BPF_JA:
			at += step->k;
			continue;
		case BPF_RET | BPF_K:
			return step->k;
		case BPF_JMP | BPF_JEQ | BPF_K:
			taken = value == step->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			taken = value > step->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			taken = value >= step->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			taken = (value & step->k) != 0;
			break;
		default:
			fprintf(stderr, "unknown instruction %#x\n", step->code);
			exit(1);
		}
		at += taken ? step->jt : step->jf;
	}
	fprintf(stderr, "the program runs off its end\n");
	exit(1);
}

static struct filter_program built;

static void ask(const char *name, unsigned arch, unsigned number, uint64_t first, uint64_t second,
                uint64_t third)
{
	const struct seccomp_data data = {
		.nr = (int)number,
		.arch = arch,
		.args = { first, second, third },
	};
	unsigned answer = run(built.instructions, built.count, &data);

	if ((answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ALLOW)
		printf("%s allow\n", name);
	else
		printf("%s %u\n", name, answer & SECCOMP_RET_DATA);
}

struct question {
	const char *name;
	unsigned number; /* i386 */
	unsigned first, second, third;
};

static const struct question questions[] = {
	{ "ptrace", 26, 0, 0, 0 },
	{ "mount", 21, 0, 0, 0 },
	{ "umount", 22, 0, 0, 0 },
	{ "umount2", 52, 0, 0, 0 },
	{ "stime", 25, 0, 0, 0 },
	{ "acct", 51, 0, 0, 0 },
	{ "chroot", 61, 0, 0, 0 },
	{ "settimeofday", 79, 0, 0, 0 },
	{ "uselib", 86, 0, 0, 0 },
	{ "swapon", 87, 0, 0, 0 },
	{ "reboot", 88, 0, 0, 0 },
	{ "ioperm", 101, 0, 0, 0 },
	{ "socketcall", 102, 1, 0, 0 },
	{ "socketcall_pair", 102, 8, 0, 0 },
	{ "socketcall_send", 102, 9, 0, 0 },
	{ "syslog", 103, 0, 0, 0 },
	{ "iopl", 110, 0, 0, 0 },
	{ "vm86old", 113, 0, 0, 0 },
	{ "swapoff", 115, 0, 0, 0 },
	{ "create_module", 127, 0, 0, 0 },
	{ "init_module", 128, 0, 0, 0 },
	{ "delete_module", 129, 0, 0, 0 },
	{ "quotactl", 131, 0, 0, 0 },
	{ "_sysctl", 149, 0, 0, 0 },
	{ "vm86", 166, 0, 0, 0 },
	{ "nfsservctl", 169, 0, 0, 0 },
	{ "pivot_root", 217, 0, 0, 0 },
	{ "lookup_dcookie", 253, 0, 0, 0 },
	{ "clock_settime", 264, 0, 0, 0 },
	{ "kexec_load", 283, 0, 0, 0 },
	{ "add_key", 286, 0, 0, 0 },
	{ "request_key", 287, 0, 0, 0 },
	{ "keyctl", 288, 0, 0, 0 },
	{ "unshare_user", 310, 0x10000000, 0, 0 },
	{ "unshare_time", 310, 0x80, 0, 0 },
	{ "clone_user", 120, 0x10000011, 0, 0 },
	{ "clone_net", 120, 0x40000011, 0, 0 },
	{ "perf_event_open", 336, 0, 0, 0 },
	{ "open_by_handle_at", 342, 0, 0, 0 },
	{ "setns", 346, 0, 0, 0 },
	{ "process_vm_readv", 347, 0, 0, 0 },
	{ "process_vm_writev", 348, 0, 0, 0 },
	{ "kcmp", 349, 0, 0, 0 },
	{ "finit_module", 350, 0, 0, 0 },
	{ "bpf", 357, 0, 0, 0 },
	{ "socket_unix", 359, 1, 1, 0 },
	{ "socket_inet", 359, 2, 1, 0 },
	{ "socket_inet_raw", 359, 2, 3, 1 },
	{ "socket_packet", 359, 17, 3, 0 },
	{ "socket_vsock", 359, 40, 1, 0 },
	{ "socketpair_dgram", 360, 1, 2, 0 },
	{ "socketpair_raw", 360, 1, 3, 0 },
	{ "bind", 361, 0, 0, 0 },
	{ "connect", 362, 0, 0, 0 },
	{ "listen", 363, 0, 0, 0 },
	{ "accept4", 364, 0, 0, 0 },
	{ "userfaultfd", 374, 0, 0, 0 },
	{ "clock_settime64", 404, 0, 0, 0 },
	{ "io_uring_setup", 425, 0, 0, 0 },
	{ "open_tree", 428, 0, 0, 0 },
	{ "move_mount", 429, 0, 0, 0 },
	{ "fsopen", 430, 0, 0, 0 },
	{ "clone3", 435, 0, 0, 0 },
	{ "pidfd_getfd", 438, 0, 0, 0 },
	{ "mount_setattr", 442, 0, 0, 0 },
	{ "quotactl_fd", 443, 0, 0, 0 },
	{ "tiocsti", 54, 0, 0x5412, 0 },
	{ "tioclinux", 54, 0, 0x541c, 0 },
	/* and what must work */
	{ "ok_getpid", 20, 0, 0, 0 },
	{ "ok_open", 5, 0, 0, 0 },
	{ "ok_ioctl_winsz", 54, 0, 0x5413, 0 },
	{ "ok_clone_thread", 120, 0x003d0f00, 0, 0 },
	{ "ok_fork", 2, 0, 0, 0 },
	{ "ok_socketpair", 360, 1, 1, 0 },
	{ "ok_unshare_files", 310, 0x400, 0, 0 },
};

int main(int argc, char **argv)
{
	unsigned flags = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 0;
	size_t number;

	if (filter_build(flags, &built) < 0) {
		perror("filter_build");
		return 1;
	}
	for (number = 0; number < sizeof questions / sizeof *questions; number++) {
		const struct question *q = &questions[number];

		ask(q->name, AUDIT_ARCH_I386, q->number, q->first, q->second, q->third);
	}
	ask("x32_getpid", AUDIT_ARCH_X86_64, 0x40000000 | 39, 0, 0, 0);
	ask("x32_ptrace", AUDIT_ARCH_X86_64, 0x40000000 | 521, 0, 0, 0);
	ask("x32_socket", AUDIT_ARCH_X86_64, 0x40000000 | 41, 2, 1, 0);
	ask("foreign_arm", AUDIT_ARCH_ARM, 20, 0, 0, 0);
	return 0;
}
