/*
 * The refused system calls by their i386 numbers, through int $0x80.  No libc, so that it
 * builds everywhere: cc -static -nostdlib -no-pie [-m32] i386.c.  A 64-bit program can use
 * this gate too (its pointers must be below 4 GiB: hence -no-pie), and the kernel then tells
 * the filter that the call is an i386 one.  Prints "NAME ERRNO" lines; 0 is success.
 *
 * machine: x86_64
 * cc: -static -nostdlib -no-pie -fno-stack-protector
 */
#if !defined __x86_64__ && !defined __i386__
#error "x86 only"
#endif

enum { NR_EXIT = 1, NR_FORK = 2, NR_WRITE = 4, NR_WAITPID = 7, NR_GETPID = 20 };

static long call(long number, long first, long second, long third)
{
	long result;

	__asm__ volatile("int $0x80"
	                 : "=a"(result)
	                 : "0"(number), "b"(first), "c"(second), "d"(third), "S"(0L), "D"(0L)
	                 : "memory");
	return (int)result;
}

struct attempt {
	char name[24];
	long number;
	long first;
	long second;
};

/* What socketcall(2) reads its arguments from: AF_UNIX, SOCK_STREAM, 0. */
static unsigned socket_arguments[3] = { 1, 1, 0 };
static unsigned dgram_arguments[4] = { 1, 2, 0, 0 };

static struct attempt attempts[] = {
	{ "ptrace", 26, -1, 0 },
	{ "mount", 21, 0, 0 },
	{ "umount", 22, 0, 0 },
	{ "umount2", 52, 0, 0 },
	{ "stime", 25, 0, 0 },
	{ "acct", 51, -1, 0 },
	{ "chroot", 61, 0, 0 },
	{ "settimeofday", 79, -1, 0 },
	{ "uselib", 86, 0, 0 },
	{ "swapon", 87, 0, 0 },
	{ "reboot", 88, 0, 0 },
	{ "ioperm", 101, -1, 0 },
	{ "socketcall_socket", 102, 1, 0 },
	{ "socketcall_pair", 102, 8, 0 },
	{ "syslog", 103, -1, 0 },
	{ "iopl", 110, -1, 0 },
	{ "vm86old", 113, 0, 0 },
	{ "swapoff", 115, 0, 0 },
	{ "create_module", 127, 0, 0 },
	{ "init_module", 128, 0, 0 },
	{ "delete_module", 129, 0, 0 },
	{ "quotactl", 131, -1, 0 },
	{ "_sysctl", 149, 0, 0 },
	{ "vm86", 166, -1, 0 },
	{ "nfsservctl", 169, -1, 0 },
	{ "pivot_root", 217, 0, 0 },
	{ "clock_settime", 264, -1, 0 },
	{ "kexec_load", 283, -1, -1 },
	{ "add_key", 286, 0, 0 },
	{ "request_key", 287, 0, 0 },
	{ "keyctl", 288, -1, 0 },
	{ "unshare_user", 310, 0x10000000, 0 },
	{ "unshare_mount", 310, 0x20000, 0 },
	{ "unshare_time", 310, 0x80, 0 },
	{ "clone_user", 120, 0x10000000 | 17, 0 },
	{ "clone_net", 120, 0x40000000 | 17, 0 },
	{ "perf_event_open", 336, 0, 0 },
	{ "open_by_handle_at", 342, -1, 0 },
	{ "setns", 346, -1, 0 },
	{ "process_vm_readv", 347, -1, 0 },
	{ "process_vm_writev", 348, -1, 0 },
	{ "kcmp", 349, -1, -1 },
	{ "finit_module", 350, -1, 0 },
	{ "bpf", 357, -1, 0 },
	{ "socket_unix", 359, 1, 1 },
	{ "socket_inet", 359, 2, 1 },
	{ "socket_packet", 359, 17, 3 },
	{ "socketpair_dgram", 360, 1, 2 },
	{ "socketpair_raw", 360, 1, 3 },
	{ "bind", 361, -1, 0 },
	{ "connect", 362, -1, 0 },
	{ "userfaultfd", 374, -1, 0 },
	{ "clock_settime64", 404, -1, 0 },
	{ "io_uring_setup", 425, 0, 0 },
	{ "open_tree", 428, -1, 0 },
	{ "fsopen", 430, 0, 0 },
	{ "clone3", 435, 0, 0 },
	{ "pidfd_getfd", 438, -1, 0 },
	{ "mount_setattr", 442, -1, 0 },
	{ "open_tree_attr", 467, -1, 0 },
	{ "beyond_470", 470, 0, 0 },
	{ "tiocsti", 54, 0, 0x5412 },
	{ "tioclinux", 54, 0, 0x541c },
	{ "getpid", NR_GETPID, 0, 0 },
};

static char line[64];
static int status;

static void print(const char *name, long number)
{
	char digits[12];
	int length = 0, count = 0;

	while (*name != '\0')
		line[length++] = *name++;
	line[length++] = ' ';
	do {
		digits[count++] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	while (count > 0)
		line[length++] = digits[--count];
	line[length++] = '\n';
	call(NR_WRITE, 1, (long)line, length);
}

/* In a child, for what cannot be undone. */
static long attempt(const struct attempt *what)
{
	long result, child = call(NR_FORK, 0, 0, 0);

	if (child == 0) {
		result = call(what->number, what->first, what->second, 0);
		call(NR_EXIT, result < 0 ? -result : 0, 0, 0);
	}
	if (child < 0)
		return -child;
	call(NR_WAITPID, child, (long)&status, 0);
	return (status & 0x7f) == 0 ? (status >> 8) & 0xff : 1000 + (status & 0x7f);
}

__attribute__((used)) static void start(void)
{
	unsigned number;

	for (number = 0; number < sizeof attempts / sizeof *attempts; number++) {
		if (attempts[number].number == 102)
			attempts[number].second =
				attempts[number].first == 1 ? (long)socket_arguments : (long)dgram_arguments;
		print(attempts[number].name, attempt(&attempts[number]));
	}
	call(NR_EXIT, 0, 0, 0);
}

/* The kernel starts us with the stack aligned to 16 (System V ABI); a call is expected to. */
__asm__(".globl _start\n"
        "_start:\n"
        "	call start\n");
