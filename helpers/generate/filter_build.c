/*
 * The default is to allow; what is refused is listed below, by group.  The rules are the
 * same for the native numbers and for those of the machine's 32-bit ABI (i386 on x86-64,
 * ARM on AArch64).  libseccomp calls x32 numbers (bit 30 set) foreign.
 *
 * Arguments: `int` parameters are 32 bits to the kernel, whatever is in the upper half of
 * the register (CVE-2019-10063).  Comparisons are made either on the lower half
 * alone (SCMP_CMP_MASKED_EQ), or so that garbage in the upper half is refused.
 */
#include "filter_build.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../csrc/request.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

#define LOW32 0xffffffffu

/* ---- always refused ------------------------------------------------------- */

/* Reaching into other processes. */
static const int other_processes[] = {
	SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev),
	SCMP_SYS(kcmp),   SCMP_SYS(pidfd_getfd),
};

/* Work done by the kernel on a process's behalf, past this filter. */
static const int past_the_filter[] = {
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register),
};

/* Key rings are shared with the host's session, namespaces or not. */
static const int keys[] = {
	SCMP_SYS(add_key),
	SCMP_SYS(keyctl),
	SCMP_SYS(request_key),
};

/* Large interfaces with a history, of no use to what runs here. */
static const int kernel_surface[] = {
	SCMP_SYS(bpf),    SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(lookup_dcookie),
	SCMP_SYS(syslog),
};

/* Handles name files by inode, whatever the view shows. */
static const int files_by_handle[] = {
	SCMP_SYS(open_by_handle_at),
};

/* Administration. Without capabilities the kernel refuses these too. */
static const int administration[] = {
	SCMP_SYS(acct),
	SCMP_SYS(clock_settime),
	SCMP_SYS(clock_settime64),
	SCMP_SYS(create_module),
	SCMP_SYS(delete_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(init_module),
	SCMP_SYS(ioperm),
	SCMP_SYS(iopl),
	SCMP_SYS(kexec_file_load),
	SCMP_SYS(kexec_load),
	SCMP_SYS(quotactl),
	SCMP_SYS(quotactl_fd),
	SCMP_SYS(reboot),
	SCMP_SYS(settimeofday),
	SCMP_SYS(stime),
	SCMP_SYS(swapoff),
	SCMP_SYS(swapon),
};

/* What only old programs ever called. */
static const int obsolete[] = {
	SCMP_SYS(_sysctl),      SCMP_SYS(get_kernel_syms), SCMP_SYS(nfsservctl),
	SCMP_SYS(query_module), SCMP_SYS(uselib),          SCMP_SYS(vm86),
	SCMP_SYS(vm86old),
};

/* i386: one call for every socket operation, with its arguments in memory, unseen. */
static const int multiplexed[] = {
	SCMP_SYS(socketcall),
};

/* ---- refused unless nested sandboxes are allowed ---------------------------- */

static const int mounts_and_namespaces[] = {
	SCMP_SYS(chroot),    SCMP_SYS(fsconfig),   SCMP_SYS(fsmount),       SCMP_SYS(fsopen),
	SCMP_SYS(fspick),    SCMP_SYS(mount),      SCMP_SYS(mount_setattr), SCMP_SYS(move_mount),
	SCMP_SYS(open_tree), SCMP_SYS(pivot_root), SCMP_SYS(setns),         SCMP_SYS(umount),
	SCMP_SYS(umount2),
};

static const unsigned namespace_flags[] = {
	CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
	CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET,
};

/* ---- sockets --------------------------------------------------------------- */

/* Refused where no socket can be made: what a descriptor from elsewhere could do. */
static const int socket_users[] = {
	SCMP_SYS(socket), SCMP_SYS(bind),   SCMP_SYS(connect),
	SCMP_SYS(listen), SCMP_SYS(accept), SCMP_SYS(accept4),
};

/* Internet protocols besides TCP, UDP and ICMP; numbers from RFC 5237's registry, Linux. */
static const unsigned odd_protocols[] = {
	33,  /* DCCP */
	115, /* L2TP */
	132, /* SCTP */
	256, /* SMC */
};

enum { LAST_FAMILY = AF_NETLINK }; /* the largest number among those ever allowed */

struct builder {
	scmp_filter_ctx context;
	int error; /* the first, negative; 0 */
};

static void refuse(struct builder *builder, int errnum, int call, unsigned count,
                   const struct scmp_arg_cmp *arguments)
{
	int result;

	if (builder->error != 0)
		return;
	result = seccomp_rule_add_array(builder->context, SCMP_ACT_ERRNO((uint32_t)errnum), call, count,
	                                arguments);
	/* EEXIST: a wider rule is there already. */
	if (result < 0 && result != -EEXIST)
		builder->error = result;
}

static void refuse_calls(struct builder *builder, const int *calls, size_t count)
{
	size_t number;

	for (number = 0; number < count; number++)
		refuse(builder, EPERM, calls[number], 0, NULL);
}

#define REFUSE_CALLS(builder, calls) refuse_calls(builder, calls, sizeof(calls) / sizeof *(calls))

/* Refuses CALL where the bits MASK of argument NUMBER are VALUE. */
static void refuse_bits(struct builder *builder, int call, unsigned number, unsigned mask,
                        unsigned value)
{
	const struct scmp_arg_cmp argument = SCMP_CMP(number, SCMP_CMP_MASKED_EQ, mask, value);

	refuse(builder, EPERM, call, 1, &argument);
}

/* The same where argument 0 is FAMILY besides. */
static void refuse_family_bits(struct builder *builder, unsigned family, unsigned number,
                               unsigned mask, unsigned value)
{
	const struct scmp_arg_cmp arguments[] = {
		SCMP_CMP(0, SCMP_CMP_MASKED_EQ, LOW32, family),
		SCMP_CMP(number, SCMP_CMP_MASKED_EQ, mask, value),
	};

	refuse(builder, EPERM, SCMP_SYS(socket), 2, arguments);
}

static void refuse_namespaces(struct builder *builder)
{
	size_t number;

	REFUSE_CALLS(builder, mounts_and_namespaces);
	for (number = 0; number < sizeof namespace_flags / sizeof *namespace_flags; number++) {
		unsigned flag = namespace_flags[number];

		refuse_bits(builder, SCMP_SYS(unshare), 0, flag, flag);
#if defined __s390__ || defined __s390x__
		refuse_bits(builder, SCMP_SYS(clone), 1, flag, flag);
#else
		refuse_bits(builder, SCMP_SYS(clone), 0, flag, flag);
#endif
	}
	/* To clone(2) this bit is part of the exit signal. */
	refuse_bits(builder, SCMP_SYS(unshare), 0, CLONE_NEWTIME, CLONE_NEWTIME);
}

/* Faking input to a terminal that the host reads (CVE-2017-5226). */
static void refuse_terminal_injection(struct builder *builder)
{
	refuse_bits(builder, SCMP_SYS(ioctl), 1, LOW32, TIOCSTI);
	refuse_bits(builder, SCMP_SYS(ioctl), 1, LOW32, TIOCLINUX);
}

/*
 * Internet sockets: the type, without its flags (SOCK_TYPE_MASK in the kernel), is
 * SOCK_STREAM (1) or SOCK_DGRAM (2). The complement, in bits: 8..15, 4..7, 3, 0.
 */
static void limit_internet(struct builder *builder, unsigned family, unsigned flags)
{
	const struct scmp_arg_cmp large[] = {
		SCMP_CMP(0, SCMP_CMP_MASKED_EQ, LOW32, family),
		SCMP_CMP(2, SCMP_CMP_GT, IPPROTO_TCP, 0),
	};
	unsigned number;

	refuse_family_bits(builder, family, 1, 8, 8);
	refuse_family_bits(builder, family, 1, 4, 4);
	refuse_family_bits(builder, family, 1, 15, 3);
	refuse_family_bits(builder, family, 1, 15, 0);
	if (flags & (REQUEST_NET_SOCKETS | REQUEST_NET_LOOPBACK)) {
		for (number = 0; number < sizeof odd_protocols / sizeof *odd_protocols; number++)
			refuse_family_bits(builder, family, 2, LOW32, odd_protocols[number]);
		return;
	}
	/* TCP only: no datagrams, and protocol 0 or 6 (not MPTCP). */
	refuse_family_bits(builder, family, 1, 15, SOCK_DGRAM);
	refuse(builder, EPERM, SCMP_SYS(socket), 2, large);
	for (number = 1; number < IPPROTO_TCP; number++)
		refuse_family_bits(builder, family, 2, LOW32, number);
}

static int family_allowed(unsigned family, unsigned flags)
{
	switch (family) {
	case AF_UNIX:
		return (flags & REQUEST_UNIX_SOCKETS) != 0;
	case AF_INET:
	case AF_INET6:
		return (flags & (REQUEST_NET_SOCKETS | REQUEST_NET_LOOPBACK | REQUEST_NET_TCP_ONLY)) != 0;
	case AF_NETLINK: /* getifaddrs(3), getaddrinfo(3) */
		return (flags & (REQUEST_NET_SOCKETS | REQUEST_NET_LOOPBACK)) != 0;
	default:
		return 0;
	}
}

static void limit_sockets(struct builder *builder, unsigned flags)
{
	const struct scmp_arg_cmp beyond = SCMP_CMP(0, SCMP_CMP_GT, LAST_FAMILY, 0);
	const struct scmp_arg_cmp not_route[] = {
		SCMP_CMP(0, SCMP_CMP_MASKED_EQ, LOW32, AF_NETLINK),
		SCMP_CMP(2, SCMP_CMP_NE, 0 /* NETLINK_ROUTE */, 0),
	};
	unsigned family;

	for (family = 0; family <= LAST_FAMILY && !family_allowed(family, flags); family++)
		;
	if (family > LAST_FAMILY) {
		REFUSE_CALLS(builder, socket_users);
		return;
	}
	/* The comparison has 64 bits: garbage in the upper half is refused here. */
	refuse(builder, EPERM, SCMP_SYS(socket), 1, &beyond);
	for (family = 0; family <= LAST_FAMILY; family++) {
		if (!family_allowed(family, flags))
			refuse_bits(builder, SCMP_SYS(socket), 0, LOW32, family);
		else if (family == AF_INET || family == AF_INET6)
			limit_internet(builder, family, flags);
		else if (family == AF_NETLINK)
			refuse(builder, EPERM, SCMP_SYS(socket), 2, not_route);
	}
}

/*
 * A pair is harmless where it cannot be aimed elsewhere: unix sockets of type
 * SOCK_STREAM (1) and SOCK_SEQPACKET (5).  SOCK_DGRAM sends to any address that sendmsg(2)
 * names, and the kernel takes SOCK_RAW for SOCK_DGRAM (unix_create in af_unix.c).
 */
static void limit_pairs(struct builder *builder, unsigned flags)
{
	const struct scmp_arg_cmp not_unix = SCMP_CMP(0, SCMP_CMP_NE, AF_UNIX, 0);

	refuse(builder, EPERM, SCMP_SYS(socketpair), 1, &not_unix);
	if (flags & REQUEST_UNIX_SOCKETS)
		return;
	refuse_bits(builder, SCMP_SYS(socketpair), 1, 8, 8); /* 8..15 */
	refuse_bits(builder, SCMP_SYS(socketpair), 1, 2, 2); /* 2, 3, 6, 7 */
	refuse_bits(builder, SCMP_SYS(socketpair), 1, 15, 0);
	refuse_bits(builder, SCMP_SYS(socketpair), 1, 15, 4);
}

static void add_rules(struct builder *builder, unsigned flags)
{
	REFUSE_CALLS(builder, other_processes);
	REFUSE_CALLS(builder, past_the_filter);
	REFUSE_CALLS(builder, keys);
	REFUSE_CALLS(builder, kernel_surface);
	REFUSE_CALLS(builder, files_by_handle);
	REFUSE_CALLS(builder, administration);
	REFUSE_CALLS(builder, obsolete);
	REFUSE_CALLS(builder, multiplexed);
	/* Its flags are in memory: libc falls back to clone(2), whose flags are seen. */
	refuse(builder, ENOSYS, SCMP_SYS(clone3), 0, NULL);
	refuse_terminal_injection(builder);
	if (!(flags & REQUEST_ALLOW_USERNS))
		refuse_namespaces(builder);
	limit_sockets(builder, flags);
	limit_pairs(builder, flags);
}

static int add_foreign(scmp_filter_ctx context)
{
	switch (seccomp_arch_native()) {
	case SCMP_ARCH_X86_64:
		return seccomp_arch_add(context, SCMP_ARCH_X86);
	case SCMP_ARCH_AARCH64:
		return seccomp_arch_add(context, SCMP_ARCH_ARM);
	default:
		return 0; /* numbers of any other kind are answered as foreign */
	}
}

/* libseccomp writes to a descriptor only; a pipe has room for the whole (pipe(7)). */
static int export_to(scmp_filter_ctx context, struct filter_program *filter)
{
	ssize_t length;
	int ends[2], result;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	result = seccomp_export_bpf(context, ends[1]);
	close(ends[1]);
	if (result == 0) {
		length = read(ends[0], filter->instructions, sizeof filter->instructions);
		if (length <= 0 || (size_t)length == sizeof filter->instructions)
			result = -E2BIG;
		else
			filter->count = (uint32_t)((size_t)length / sizeof *filter->instructions);
	}
	close(ends[0]);
	return result;
}

int filter_build(unsigned flags, struct filter_program *filter)
{
	struct builder builder = { .context = seccomp_init(SCMP_ACT_ALLOW) };
	int result;

	if (builder.context == NULL) {
		errno = ENOMEM;
		return -1;
	}
	result = seccomp_attr_set(builder.context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
	/*
	 * A binary tree by number: the kernel runs the program once for every number when it
	 * is loaded (seccomp_cache_prepare), which the inner stage does wait for.
	 */
	if (result == 0)
		result = seccomp_attr_set(builder.context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (result == 0)
		result = add_foreign(builder.context);
	if (result == 0) {
		add_rules(&builder, flags);
		result = builder.error;
	}
	if (result == 0)
		result = export_to(builder.context, filter);
	seccomp_release(builder.context);
	errno = -result;
	return result < 0 ? -1 : 0;
}
