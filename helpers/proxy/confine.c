#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- files: landlock(7) ------------------------------------------------------------------------- */

/* Everything of the first version, which newer kernels know too. */
static const uint64_t handled =
	LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
	LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
	LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
	LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
	LANDLOCK_ACCESS_FS_MAKE_SYM;

static void let_read_below(int rules, const char *directory)
{
	struct landlock_path_beneath_attr rule = {
		.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
		.parent_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC),
	};

	if (rule.parent_fd < 0)
		return;
	syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	close(rule.parent_fd);
}

/* The hosts file is read anew for each lookup, and may be a link to elsewhere. */
static void let_read_hosts(int rules)
{
	char path[PATH_MAX];

	let_read_below(rules, "/etc");
	if (realpath("/etc/hosts", path) != NULL && strncmp(path, "/etc/", 5) != 0)
		let_read_below(rules, dirname(path));
}

static void confine_files(void)
{
	const struct landlock_ruleset_attr attributes = { .handled_access_fs = handled };
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);

	if (rules < 0)
		return;
	let_read_hosts(rules);
	syscall(SYS_landlock_restrict_self, rules, 0);
	close(rules);
}

/* ---- calls: seccomp(2) ----------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define THIS_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef THIS_ARCHITECTURE
static const uint32_t refused_calls[] = {
	SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_clone,
#ifdef SYS_clone3
	SYS_clone3,
#endif
#ifdef SYS_fork
	SYS_fork,   SYS_vfork,
#endif
	SYS_kill,   SYS_tkill,    SYS_bpf,    SYS_io_uring_setup,   SYS_unshare,           SYS_setns,
	SYS_mount,  SYS_keyctl,
};

enum { REFUSED = sizeof refused_calls / sizeof *refused_calls };

static void confine_calls(void)
{
	/* Other calls than this program's own ABI has it does not make: it is killed. */
	struct sock_filter code[6 + 2 * REFUSED] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCHITECTURE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

#ifdef __X32_SYSCALL_BIT
	code[program.len++] =
		(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, __X32_SYSCALL_BIT, 2 * REFUSED, 0);
#endif
	for (int i = 0; i < REFUSED; i++) {
		code[program.len++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused_calls[i], 0, 1);
		code[program.len++] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA));
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
#else
static void confine_calls(void)
{
}
#endif

void confine(void)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	confine_files();
	confine_calls();
}
