/*
 * From a policy to what is launched: resolution, mounts, the backend's words, and the
 * flags and limits that the helper enforces.  `sandbox.plan` shows it; a run uses it.
 */
#ifndef EXECSANDBOX_PLAN_H
#define EXECSANDBOX_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "bwrap.h"
#include "failure.h"
#include "mounts.h"
#include "policy.h"
#include "request.h"
#include "resolve.h"

/* What a plan depends on besides the policy. Strings are the caller's. */
struct plan_context {
	struct resolve_context resolve;
	const char *helper;         /* absolute path */
	bool helper_named;          /* it was named by the environment */
	const char *filter_program; /* absolute path of the filtering proxy, or NULL */
	size_t proxy_count;         /* how many the request has */
	const char **launchers;     /* absolute paths where bubblewrap may be, best first */
	size_t launcher_count;
	bool launcher_named; /* the only one, and named by the environment */
	bool own_view;       /* the inner stage can mount on this host */
	bool proc_mountable; /* this host lets a sandbox mount its own /proc */
};

struct plan {
	struct resolved resolved;
	struct arena arena; /* owns what the following point to */
	struct mounts mounts;
	struct bwrap_plan bwrap;
	bool direct;         /* nothing is to be enforced but limits: no launcher */
	const char *backend; /* "bwrap" or "direct" */
	const char *cwd;
	const char *home; /* of a direct run, to be made and removed; NULL: none */
	uint32_t flags;   /* enum request_flag, as far as the policy decides */
	uint64_t limits[REQUEST_LIMITS];
};

/*
 * Whether nothing is to be enforced for POLICY but limits: then its commands run without a
 * launcher, in the host's own view.
 */
bool plan_is_direct(const struct policy *policy);

/* OUT must be zeroed; release it with plan_release whatever is returned. 0, or -1 with FAILURE. */
int plan_make(const struct policy *policy, const struct plan_context *context, struct plan *out,
              struct failure *failure);

/* Idempotent. */
void plan_release(struct plan *plan);

#endif
