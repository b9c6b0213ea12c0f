/*
 * Tries every system call that the sandbox refuses, by its native number, and again as an
 * x32 number (bit 30 set).  Prints a line for each: "native NAME ERRNO" or "x32 NAME ERRNO",
 * with 0 for success.  The arguments do no harm where a call gets through.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

struct attempt {
	const char *name;
	long number;
	long first; /* argument */
};

/* clang-format off: it cannot lay out initialisers in macros */
#define PLAIN(name)                                                                                \
	{                                                                                              \
#name, SYS_##name, -1                                                                      \
	}
/* clang-format on */

static const struct attempt attempts[] = {
	PLAIN(ptrace),
	PLAIN(process_vm_readv),
	PLAIN(process_vm_writev),
	PLAIN(kcmp),
	{ "pidfd_getfd", 438, -1 },
	{ "io_uring_setup", 425, -1 },
	{ "io_uring_enter", 426, -1 },
	{ "io_uring_register", 427, -1 },
	PLAIN(add_key),
	PLAIN(keyctl),
	PLAIN(request_key),
	PLAIN(bpf),
	PLAIN(perf_event_open),
	PLAIN(userfaultfd),
	PLAIN(syslog),
	PLAIN(open_by_handle_at),
	PLAIN(acct),
	PLAIN(clock_settime),
	PLAIN(delete_module),
	PLAIN(finit_module),
	PLAIN(init_module),
	PLAIN(kexec_load),
#ifdef SYS_kexec_file_load
	PLAIN(kexec_file_load),
#endif
#ifdef SYS_ioperm
	PLAIN(ioperm),
	PLAIN(iopl),
#endif
	PLAIN(quotactl),
	{ "quotactl_fd", 443, -1 },
	PLAIN(reboot),
	PLAIN(settimeofday),
	PLAIN(swapoff),
	PLAIN(swapon),
#ifdef SYS_uselib
	PLAIN(uselib),
#endif
#ifdef SYS__sysctl
	PLAIN(_sysctl),
#endif
#ifdef SYS_create_module
	PLAIN(create_module),
	PLAIN(get_kernel_syms),
	PLAIN(query_module),
#endif
	PLAIN(nfsservctl),
	PLAIN(lookup_dcookie),
	PLAIN(chroot),
	PLAIN(mount),
	PLAIN(umount2),
	PLAIN(pivot_root),
	PLAIN(setns),
	{ "open_tree", 428, -1 },
	{ "move_mount", 429, -1 },
	{ "fsopen", 430, -1 },
	{ "fsconfig", 431, -1 },
	{ "fsmount", 432, -1 },
	{ "fspick", 433, -1 },
	{ "clone3", 435, 0 },
	{ "mount_setattr", 442, -1 },
	{ "open_tree_attr", 467, -1 },
	{ "beyond_470", 470, -1 },
	{ "beyond_1000", 1000, -1 },
	{ "unshare_user", SYS_unshare, CLONE_NEWUSER },
	{ "unshare_mount", SYS_unshare, CLONE_NEWNS },
	{ "unshare_net", SYS_unshare, CLONE_NEWNET },
	{ "unshare_pid", SYS_unshare, CLONE_NEWPID },
	{ "unshare_ipc", SYS_unshare, CLONE_NEWIPC },
	{ "unshare_uts", SYS_unshare, CLONE_NEWUTS },
	{ "unshare_cgroup", SYS_unshare, CLONE_NEWCGROUP },
	{ "unshare_time", SYS_unshare, CLONE_NEWTIME },
	{ "clone_user", SYS_clone, CLONE_NEWUSER | SIGCHLD },
	{ "clone_mount", SYS_clone, CLONE_NEWNS | SIGCHLD },
	{ "clone_net", SYS_clone, CLONE_NEWNET | SIGCHLD },
	{ "clone_pid", SYS_clone, CLONE_NEWPID | SIGCHLD },
	{ "clone_ipc", SYS_clone, CLONE_NEWIPC | SIGCHLD },
	{ "clone_uts", SYS_clone, CLONE_NEWUTS | SIGCHLD },
	{ "clone_cgroup", SYS_clone, CLONE_NEWCGROUP | SIGCHLD },
	/* the kernel ignores the upper half of the register */
	{ "clone_user_garbage", SYS_clone, 0x7700000000000000 | CLONE_NEWUSER | SIGCHLD },
	{ "unshare_user_garbage", SYS_unshare, 0x7700000000000000 | CLONE_NEWUSER },
};

/* In a child, for what cannot be undone. */
static int try_in_child(long number, long first)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		long result = syscall(number, first, 0L, 0L, 0L, 0L, 0L);
		_exit(result < 0 ? errno : 0);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int main(void)
{
	size_t number;

	for (number = 0; number < sizeof attempts / sizeof *attempts; number++)
		printf("native %s %d\n", attempts[number].name,
		       try_in_child(attempts[number].number, attempts[number].first));
#ifdef __x86_64__
	for (number = 0; number < sizeof attempts / sizeof *attempts; number++)
		printf("x32 %s %d\n", attempts[number].name,
		       try_in_child(attempts[number].number | 0x40000000, attempts[number].first));
	/* a harmless one, and those whose x32 number differs */
	printf("x32 getpid %d\n", try_in_child(0x40000000 | SYS_getpid, 0));
	printf("x32 ptrace_521 %d\n", try_in_child(0x40000000 | 521, 0));
	printf("x32 kexec_load_528 %d\n", try_in_child(0x40000000 | 528, 0));
	printf("x32 process_vm_readv_539 %d\n", try_in_child(0x40000000 | 539, -1));
#endif
	return 0;
}
