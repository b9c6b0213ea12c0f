/*
 * Why something could not be done: what becomes the error table of the Lua
 * interface.  Nothing here is allocated, so that reporting cannot fail.
 */
#ifndef EXECSANDBOX_FAILURE_H
#define EXECSANDBOX_FAILURE_H

enum failure_kind {
	FAILURE_POLICY,      /* the policy is malformed, or does not fit what is on disk */
	FAILURE_UNAVAILABLE, /* this host or backend cannot enforce it; see capability */
	FAILURE_EXECUTION,   /* it could not be launched; see stage */
	FAILURE_MEMORY,      /* memory is exhausted: raised, not returned, in Lua */
};

struct failure {
	enum failure_kind kind;
	int errnum;              /* 0 where none applies */
	char capability[40];     /* "" where none applies */
	char stage[40];          /* "" where none applies */
	char remedy[256];        /* "" where none applies */
	char message[8192 + 512]; /* a sentence; room for two longest paths */
};

/*
 * Fills FAILURE (its capability, stage, remedy and errno are cleared) and returns
 * -1, so that a function can end with `return failure_policy(failure, …)`.
 */
int failure_policy(struct failure *failure, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int failure_unavailable(struct failure *failure, const char *capability, const char *remedy,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
int failure_execution(struct failure *failure, const char *stage, int errnum, const char *format,
                      ...) __attribute__((format(printf, 4, 5)));
int failure_memory(struct failure *failure);

#endif
