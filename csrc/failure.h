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
	int errnum;               /* 0 where none applies */
	char capability[40];      /* "" where none applies */
	char stage[40];           /* "" where none applies */
	char remedy[256];         /* "" where none applies */
	char message[8192 + 512]; /* a sentence; room for two longest paths */
};

/*
 * Fill FAILURE (its capability, stage, remedy and errno are cleared) and are -1, so that
 * a function can end with `return failure_policy(failure, …)`.  Macros, so that a compiler
 * or analyzer sees the value.
 */
static inline int failure_result(void)
{
	return -1;
}

#define failure_policy(failure, ...) (failure_set_policy((failure), __VA_ARGS__), failure_result())
#define failure_unavailable(failure, capability, remedy, ...)                                      \
	(failure_set_unavailable((failure), (capability), (remedy), __VA_ARGS__), failure_result())
#define failure_execution(failure, stage, errnum, ...)                                             \
	(failure_set_execution((failure), (stage), (errnum), __VA_ARGS__), failure_result())
#define failure_memory(failure) (failure_set_memory(failure), failure_result())

void failure_set_policy(struct failure *failure, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void failure_set_unavailable(struct failure *failure, const char *capability, const char *remedy,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));
void failure_set_execution(struct failure *failure, const char *stage, int errnum,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
void failure_set_memory(struct failure *failure);

#endif
