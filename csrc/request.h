/*
 * What the core and the helper say to each other.
 *
 * The core writes one request into a memory file and starts the helper with the
 * descriptors below.  The helper answers with records on the control socket
 * (SOCK_SEQPACKET: one record a message), and takes commands from it.  Its end of
 * file, on either side, means that the other one is gone.
 *
 * Core and helper are built together and run on one machine: native byte order,
 * and a version that must match exactly.
 */
#ifndef EXECSANDBOX_REQUEST_H
#define EXECSANDBOX_REQUEST_H

#include <stdint.h>

#define REQUEST_MAGIC 0x58424f58u
#define REQUEST_VERSION 3u

/* Descriptors the supervisor is started with. 0, 1 and 2 are /dev/null. */
enum {
	SUPERVISOR_CONTROL = 3, /* the control socket */
	SUPERVISOR_REQUEST = 4, /* the memory file with the request, read and write */
	SUPERVISOR_STDIN = 5,   /* what the command gets as standard input */
	SUPERVISOR_OUTPUT = 6,  /* capture file of stdout, open for writing, empty */
	SUPERVISOR_ERROR = 7,   /* capture file of stderr; /dev/null where merged */
	SUPERVISOR_FIRST_FREE = 8
};

/* A run of bytes in the request, by offset from its start. */
struct request_span {
	uint32_t offset;
	uint32_t length;
};

/*
 * A list of NUL-terminated strings, one after the other, in a span whose last byte
 * is NUL (or which is empty).
 */
struct request_list {
	struct request_span bytes;
	uint32_t count;
	uint32_t pad;
};

enum request_flag {
	REQUEST_MERGE = 1 << 0,         /* stderr joins stdout in one pipe */
	REQUEST_DIRECT = 1 << 1,        /* no launcher: the inner stage is run directly */
	REQUEST_PID_NAMESPACE = 1 << 2, /* the inner stage is PID 1 of its own */
	REQUEST_LEAVE = 1 << 3,         /* descendants = "leave" */
	REQUEST_FILTER = 1 << 4,        /* install the system call filter and no_new_privs */
	REQUEST_ALLOW_USERNS = 1 << 5,  /* filter: nested sandboxes allowed */
	REQUEST_NET_SOCKETS = 1 << 6,   /* filter: AF_INET and AF_INET6 of every kind */
	REQUEST_NET_TCP_ONLY = 1 << 7,  /* filter: of these only TCP (managed proxy, loopback unset) */
	REQUEST_NET_LOOPBACK = 1 << 8, /* inner: the loopback interface is up; sockets as NET_SOCKETS */
	REQUEST_UNIX_SOCKETS =
		1 << 9, /* filter: named unix sockets usable (view holds no host socket) */
	REQUEST_SCOPE_ABSTRACT =
		1 << 10, /* inner: Landlock scope for abstract unix sockets, required */
	REQUEST_CGROUP_PROCESSES = 1 << 11, /* limits[processes] by a pids cgroup, required */
	REQUEST_PROGRESS = 1 << 12,         /* the core wants RECORD_PROGRESS */
	REQUEST_VIEW = 1 << 13,             /* inner: the view is still to be built, of `mounts` */
	REQUEST_PROXY = 1 << 14,            /* inner: listens for `proxies`, and hands that out */
};

enum request_limit {
	/* the order of enum limit in policy.h */
	REQUEST_LIMIT_CPU,
	REQUEST_LIMIT_MEMORY,
	REQUEST_LIMIT_PROCESSES,
	REQUEST_LIMIT_FILES,
	REQUEST_LIMIT_FILE_SIZE,
	REQUEST_LIMIT_CORE,
	REQUEST_LIMITS
};
#define REQUEST_UNLIMITED UINT64_MAX

/* Placeholders of one run: their descriptors go along in one message (SCM_MAX_FD is 253). */
enum { CLAIMS_MOST = 240 };

/* What keeps a place of the run's from being cleaned up: those, and a private home's. */
enum { LOCKS_MOST = CLAIMS_MOST + 1 };

/* A placeholder to make, or to join, before launch (see claim.h). */
struct request_claim {
	uint32_t path;  /* offset of a NUL-terminated canonical path */
	uint32_t check; /* index of the check to complete with device and inode, or UINT32_MAX */
	uint32_t mount; /* index of the mount to complete likewise, or UINT32_MAX */
	uint32_t pad;
};

/*
 * A view that the inner stage builds (REQUEST_VIEW).  The launcher leaves it in a root with
 * the host's at VIEW_HOST and an empty directory VIEW_ROOT, and with the capabilities to
 * mount.  The first mount is at "/".
 */
#define VIEW_HOST "/host"
#define VIEW_ROOT "/view"

enum view_kind {
	VIEW_FRESH,     /* a new directory with `mode`, a filesystem of its own */
	VIEW_BIND,      /* device:inode of the host, found at `source` */
	VIEW_MASK,      /* an unreadable directory, the same for all */
	VIEW_MASK_FILE, /* an unreadable empty file, the same for all */
	VIEW_DEV,       /* a new /dev with the harmless nodes */
	VIEW_PROC,      /* a new /proc of this process namespace */
	VIEW_DIRECTORY, /* no mount: a directory with `mode` made in a fresh one */
	VIEW_LINK,      /* no mount: a symbolic link with the text `source` made in a fresh one */
};

enum view_flag {
	VIEW_READ_ONLY = 1 << 0, /* VIEW_FRESH and VIEW_DEV: in the end; VIEW_BIND: with all below it */
	VIEW_DEVICES = 1 << 1,   /* device nodes are usable */
	VIEW_MADE = 1 << 2,      /* the place is made, as a directory or as a file */
	VIEW_IS_FILE = 1 << 3,   /* what is mounted is no directory */
};

struct request_mount {
	uint32_t kind;   /* enum view_kind */
	uint32_t flags;  /* enum view_flag */
	uint32_t path;   /* offset of a NUL-terminated canonical path */
	uint32_t source; /* offset likewise; 0: none */
	uint32_t mode;
	uint32_t pad;
	uint64_t device; /* of the source; 0, 0: not checked */
	uint64_t inode;
	uint64_t place_device; /* of what is mounted over; 0, 0: not checked */
	uint64_t place_inode;
};

/* What must be true of the view, by object, before the command may run. */
enum check_kind {
	CHECK_BIND_READ,  /* the object device:inode, on a read-only mount */
	CHECK_BIND_WRITE, /* the object device:inode */
	CHECK_MASK_DIRECTORY, /* an empty-looking directory of mode 0000 or 0111, read-only, not device:inode */
	CHECK_MASK_FILE, /* an empty regular file of mode 0000, not device:inode */
	CHECK_PIN, /* a directory that is a mount point, maybe beneath another mount: rmdir says EBUSY */
	CHECK_PRIVATE, /* a fresh writable directory, not device:inode */
};
struct request_check {
	uint32_t kind; /* enum check_kind */
	uint32_t path; /* offset of a NUL-terminated canonical path */
	uint64_t device;
	uint64_t inode;
};

/*
 * A way out of a network namespace of the sandbox's own: a loopback address in there, where
 * the inner stage listens.  The listening sockets go to the supervisor before the command
 * starts.  Addresses have the form of IPv6, those of IPv4 mapped (RFC 4291, 2.5.5.2), and
 * ports the host's byte order.
 */
enum proxy_kind {
	PROXY_RELAY,  /* the supervisor connects what comes to the proxy at `outside` */
	PROXY_FILTER, /* the program `filter_program` gets the socket (filter_wire.h) */
};

enum proxy_flag {
	PROXY_OPTIONAL = 1 << 0, /* where there is no such address inside, it goes without */
};

enum { PROXIES_MOST = 128, PROXY_ADDRESSES = 2 };

struct request_proxy {
	uint32_t kind;  /* enum proxy_kind */
	uint32_t flags; /* enum proxy_flag */
	uint8_t inside[16];
	uint8_t outside[PROXY_ADDRESSES][16]; /* tried in this order */
	uint16_t inside_port;
	uint16_t outside_port;
	uint32_t outside_count; /* 0 for PROXY_FILTER */
};

struct request {
	uint32_t magic;
	uint32_t version;
	uint32_t size;           /* of the whole request, in bytes */
	uint32_t flags;          /* enum request_flag */
	uint64_t timeout_ns;     /* from launch; 0: none */
	uint64_t kill_grace_ns;  /* between TERM and KILL */
	uint64_t drain_grace_ns; /* how long pipes may stay open after the command's end */
	uint64_t capture_limit;  /* bytes stored per stream */
	uint64_t limits[REQUEST_LIMITS];
	uint64_t cwd_device; /* 0, 0: not checked (direct runs) */
	uint64_t cwd_inode;
	uint32_t cwd;                    /* offset of a NUL-terminated absolute path */
	uint32_t run_id;                 /* names cgroups; unique per core */
	struct request_list argv;        /* at least one */
	struct request_list environment; /* NAME=value, whole environment of the command */
	struct request_list
		launcher; /* program (absolute) and its words, to be put on its command line;
	                                    the supervisor appends `--args FD -- /proc/self/fd/N inner`  */
	struct request_list arguments; /* what the launcher reads from --args */
	uint32_t empty_files; /* how many descriptors of empty files the arguments name: FD numbers
	                         EMPTY_FILE_FIRST … EMPTY_FILE_FIRST + empty_files - 1 */
	uint32_t claim_count;
	uint32_t claims; /* offset of struct request_claim[claim_count], aligned to 8 */
	uint32_t check_count;
	uint32_t checks; /* offset of struct request_check[check_count], aligned to 8 */
	uint32_t mount_count;
	uint32_t mounts;     /* offset of struct request_mount[mount_count], aligned to 8 */
	uint32_t inner_path; /* offset of the path by which the launcher can execute INNER_PROGRAM;
	                        0: /proc/self/fd/8 (for roots without a /proc) */
	uint32_t home;       /* offset of the canonical path of a direct run's private home; 0: none */
	uint32_t proxy_count;
	uint32_t proxies;        /* offset of struct request_proxy[proxy_count], aligned to 8 */
	uint32_t filter_program; /* offset of its absolute path, where there is a PROXY_FILTER */
	uint32_t pad;
};

/* Descriptors that the launcher (and through it the inner stage) is started with. */
enum {
	INNER_CONTROL = 3, /* SOCK_SEQPACKET to the supervisor */
	INNER_REQUEST = 4, /* the same memory file */
	INNER_STDIN = 5,
	INNER_STDOUT = 6,
	INNER_STDERR = 7,
	INNER_PROGRAM = 8,   /* the helper itself, executed by descriptor */
	INNER_ARGUMENTS = 9, /* the launcher's --args */
	EMPTY_FILE_FIRST = 16,
};

/* ---- records, supervisor to core -------------------------------------- */

enum record_type {
	RECORD_STARTED = 1, /* struct record_started */
	RECORD_PROGRESS,    /* struct record_progress; never queued twice */
	RECORD_FINISHED,    /* struct record_finished; the last one, always sent */
};

struct record_started {
	uint32_t type;
	int32_t pid; /* of the command, as the supervisor's namespace numbers it; 0 if unknown */
};

struct record_stream {
	uint64_t stored;   /* bytes in the capture file */
	uint64_t observed; /* bytes drained */
	int32_t errnum;    /* of the write that failed; 0: none */
	int32_t closed;    /* 1: end of file was seen */
};

struct record_progress {
	uint32_t type;
	uint32_t pad;
	struct record_stream streams[2];
};

enum ending {
	ENDING_EXITED,
	ENDING_TIMEOUT,
	ENDING_CANCELLED,
	ENDING_LAUNCH_FAILED,
};

struct record_finished {
	uint32_t type;
	uint32_t ending;   /* enum ending */
	int32_t exit_code; /* -1 where a signal ended the command, or it never ran */
	int32_t signal;    /* 0 where none */
	int32_t errnum;    /* launch-failed */
	uint32_t descendants_killed;
	uint64_t real_ns; /* from launch to the command's end */
	uint64_t user_ns;
	uint64_t system_ns;
	uint64_t max_rss_bytes;
	struct record_stream streams[2];
	char stage[32];  /* launch-failed: "backend", "claim", "verify", "filter", "limits",
	                         "proxy", "cwd", "find-program", "exec", "supervisor", … */
	char text[4096]; /* launch-failed: a sentence or the launcher's own words */
};

/* ---- commands, core to supervisor -------------------------------------- */

enum command_type {
	COMMAND_SIGNAL = 1, /* value: signal number, sent to the command's process group */
	COMMAND_CANCEL,     /* end the run: TERM, kill_grace, KILL */
	COMMAND_END,        /* end the run: KILL, and report */
	COMMAND_PROGRESS,   /* the last RECORD_PROGRESS was read: another may be sent */
	COMMAND_FILTER,     /* the first one, where there is a PROXY_FILTER: its configuration and
	                       its report (filter_wire.h) come along, as SCM_RIGHTS in this order */
};

struct command {
	uint32_t type;
	int32_t value;
};

#endif
