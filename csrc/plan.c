#include "plan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "identity.h"
#include "landlock.h"

/* Below that, no limit is worth a look. */
enum { MANY_MOUNTS = 1000 };

struct planning {
	const struct policy *policy;
	const struct plan_context *context;
	struct plan *plan;
	struct failure *failure;
	enum unix_sockets unix_sockets; /* never UNIX_SOCKETS_DEFAULT */
	bool every_socket;              /* nothing about unix sockets is restricted */
};

/* ---- what the policy asks for ----------------------------------------------- */

static bool opens_filesystem(const struct policy *policy)
{
	return policy->filesystem == FILESYSTEM_EXTERNAL ||
	       (policy->filesystem == FILESYSTEM_UNRESTRICTED && policy->rule_count == 0 &&
	        policy->workspace_roots.count == 0);
}

/* With the filesystem and the network open, and nothing else asked for. */
bool plan_is_direct(const struct policy *policy)
{
	return opens_filesystem(policy) && policy->network == NETWORK_ENABLED &&
	       policy->unix_sockets == UNIX_SOCKETS_DEFAULT && !policy->private_tmp &&
	       !policy->private_runtime && policy->devices.count == 0 &&
	       policy->isolate_processes != CHOICE_YES && policy->mount_proc != CHOICE_YES;
}

static void plan_limits(struct planning *p)
{
	size_t i;

	for (i = 0; i < LIMIT_COUNT; i++)
		p->plan->limits[i] = p->policy->limits[i];
	if (p->policy->limits[LIMIT_PROCESSES] != LIMIT_NONE && identity_is_real_root())
		p->plan->flags |= REQUEST_CGROUP_PROCESSES;
}

/* ---- sockets ------------------------------------------------------------------- */

/*
 * An abstract socket has no name in the filesystem: only a network namespace or Landlock
 * (ABI 6) keeps the host's out of reach.
 */
static int plan_unix_sockets(struct planning *p)
{
	const struct policy *policy = p->policy;
	bool shares_network = policy->network == NETWORK_ENABLED;
	bool scoped = landlock_abi() >= LANDLOCK_ABI_SCOPES;

	p->unix_sockets = policy->unix_sockets;
	if (p->unix_sockets == UNIX_SOCKETS_DEFAULT) {
		if (shares_network && opens_filesystem(policy)) {
			p->every_socket = true;
			p->unix_sockets = UNIX_SOCKETS_INTERNAL;
			p->plan->flags |= REQUEST_UNIX_SOCKETS;
			return 0;
		}
		/* Sockets that the host binds later can only be kept out of reach like this. */
		p->unix_sockets = UNIX_SOCKETS_NONE;
	}
	if (p->unix_sockets == UNIX_SOCKETS_NONE)
		return 0;
	if (shares_network && !scoped)
		return failure_unavailable(
			p->failure, "unix_sockets", "use unix_sockets = \"none\", or isolate the network",
			"with the host's network, this kernel cannot keep the host's abstract unix sockets "
			"out of reach (that takes Landlock ABI %d, here it is %d)",
			LANDLOCK_ABI_SCOPES, landlock_abi());
	p->plan->flags |= REQUEST_UNIX_SOCKETS;
	if (shares_network)
		p->plan->flags |= REQUEST_SCOPE_ABSTRACT;
	return 0;
}

static int plan_network(struct planning *p)
{
	switch (p->policy->network) {
	case NETWORK_ENABLED:
		p->plan->flags |= REQUEST_NET_SOCKETS;
		return 0;
	case NETWORK_ISOLATED:
		if (p->policy->network_loopback)
			p->plan->flags |= REQUEST_NET_SOCKETS | REQUEST_NET_LOOPBACK;
		return 0;
	case NETWORK_PROXY_ONLY:
		break;
	}
	if (p->context->proxy_count == 0)
		return failure_unavailable(p->failure, "network_proxy_only",
		                           "use network = \"isolated\" or \"enabled\"",
		                           "there is no proxy for this run");
	/* Nothing but TCP, whose only ways out are the listeners of the proxies. */
	p->plan->flags |= REQUEST_NET_TCP_ONLY | REQUEST_PROXY;
	return 0;
}

/* ---- programs -------------------------------------------------------------------- */

static bool is_writable_inside(const struct planning *p, const char *path)
{
	const struct resolved_rule *rule = resolved_find(&p->plan->resolved, path);

	return rule != NULL && rule->access == ACCESS_WRITE;
}

static int check_helper(struct planning *p)
{
	if (p->context->helper_named && is_writable_inside(p, p->context->helper))
		return failure_policy(p->failure,
		                      "EXECSANDBOX_HELPER names '%s', which the policy lets the command "
		                      "write: it could replace what contains it",
		                      p->context->helper);
	/* The filtering proxy is the one beside it. */
	if (p->context->helper_named && p->context->filter_program != NULL &&
	    is_writable_inside(p, p->context->filter_program))
		return failure_policy(p->failure,
		                      "'%s', beside what EXECSANDBOX_HELPER names, is a file that the "
		                      "policy lets the command write: it could replace what contains it",
		                      p->context->filter_program);
	return 0;
}

/* A launcher that the command could write is passed over, or refused where it was named. */
static const char *find_launcher(struct planning *p)
{
	size_t i;

	for (i = 0; i < p->context->launcher_count; i++) {
		const char *path = p->context->launchers[i];
		char canonical[PATH_MAX];

		if (access(path, X_OK) < 0)
			continue;
		if (realpath(path, canonical) == NULL) {
			if (errno != ENOMEM)
				continue;
			failure_set_memory(p->failure);
			return NULL;
		}
		if (!is_writable_inside(p, canonical))
			return path;
		if (p->context->launcher_named) {
			failure_policy(p->failure,
			               "EXECSANDBOX_BWRAP names '%s', which the policy lets the command "
			               "write: it could replace what contains it",
			               path);
			return NULL;
		}
		/* Whoever may write everything may also write this one. */
		if (is_writable_inside(p, "/"))
			return path;
	}
	failure_unavailable(
		p->failure, "available",
		"install bubblewrap (on Debian and Ubuntu: apt install bubblewrap)",
		"bubblewrap (bwrap) was not found%s%s", p->context->launcher_named ? " at " : " on PATH",
		p->context->launcher_named && p->context->launcher_count > 0 ? p->context->launchers[0]
																	 : "");
	snprintf(p->failure->stage, sizeof p->failure->stage, "backend");
	p->failure->errnum = ENOENT;
	return NULL;
}

/* ---- the plan ---------------------------------------------------------------------- */

static int check_cwd(struct planning *p)
{
	const struct resolved *resolved = &p->plan->resolved;
	const struct resolved_rule *rule;

	p->plan->cwd = resolved->cwd;
	if (resolved->cwd == NULL)
		return failure_execution(p->failure, "cwd", ENOENT,
		                         "the working directory '%s' does not exist or is not a directory",
		                         p->context->resolve.cwd);
	if (p->plan->direct)
		return 0;
	rule = resolved_find(resolved, resolved->cwd);
	if (rule == NULL || rule->access == ACCESS_DENY)
		return failure_execution(p->failure, "cwd", EACCES,
		                         "the working directory '%s' is denied by the policy",
		                         resolved->cwd);
	return 0;
}

/* A set-user-id bubblewrap gives no capabilities away. */
static bool is_set_id(const char *path)
{
	struct stat status;

	return stat(path, &status) < 0 || (status.st_mode & S_ISUID) != 0;
}

static int check_claims(struct planning *p)
{
	const struct mounts *mounts = &p->plan->mounts;
	size_t i, claims = 0;

	for (i = 0; i < mounts->count; i++)
		claims += mounts->items[i].claim != NULL;
	if (claims <= CLAIMS_MOST)
		return 0;
	return failure_unavailable(p->failure, "explicit_filesystem_scopes",
	                           "deny the directories that they are in, or make them",
	                           "the policy keeps %zu missing names from being made; %d can be",
	                           claims, CLAIMS_MOST);
}

/* A namespace holds so many mounts (proc_sys_fs(5)); those of the host are in it twice. */
static int check_mount_max(struct planning *p)
{
	enum { HOSTS_OWN = 4096 };
	struct plan *plan = p->plan;
	unsigned long most = 100000;
	char text[32];
	FILE *file = fopen("/proc/sys/fs/mount-max", "re");

	if (file != NULL) {
		if (fgets(text, sizeof text, file) != NULL)
			most = strtoul(text, NULL, 10);
		fclose(file);
	}
	if (!(plan->flags & REQUEST_VIEW) || plan->mounts.count + HOSTS_OWN <= most)
		return 0;
	return mounts_too_many(&plan->mounts, &plan->arena, p->failure,
	                       "more than fit into the %lu of a mount namespace (fs.mount-max)", most);
}

/* bubblewrap is given a descriptor for each file that it masks. */
static int check_masks(struct planning *p)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_max == RLIM_INFINITY ||
	    p->plan->bwrap.empty_files + EMPTY_FILE_FIRST < files.rlim_max)
		return 0;
	return failure_unavailable(p->failure, "explicit_filesystem_scopes",
	                           "deny the directories that they are in, or raise RLIMIT_NOFILE",
	                           "the policy denies %u files, and this process may have %llu "
	                           "descriptors",
	                           p->plan->bwrap.empty_files, (unsigned long long)files.rlim_max);
}

static int plan_view(struct planning *p)
{
	struct plan *plan = p->plan;
	bool processes = p->policy->isolate_processes != CHOICE_NO;
	struct mounts_options options = { processes, p->context->proc_mountable,
		                              identity_is_real_root(),
		                              p->unix_sockets != UNIX_SOCKETS_NONE && !p->every_socket };
	struct bwrap_options words = { find_launcher(p), p->context->helper, processes,
		                           p->policy->network != NETWORK_ENABLED, p->context->own_view };

	if (words.program == NULL)
		return -1;
	words.own_view = words.own_view && !is_set_id(words.program);
	plan->flags |= REQUEST_FILTER | (words.own_view ? REQUEST_VIEW : 0);
	if (processes)
		plan->flags |= REQUEST_PID_NAMESPACE;
	if (p->policy->allow_user_namespaces)
		plan->flags |= REQUEST_ALLOW_USERNS;
	if (mounts_build(p->policy, &plan->resolved, &options, &plan->arena, &plan->mounts,
	                 p->failure) < 0)
		return -1;
	if (check_claims(p) < 0 || (plan->mounts.count > MANY_MOUNTS && check_mount_max(p) < 0) ||
	    bwrap_plan(&plan->mounts, &words, &plan->arena, &plan->bwrap, p->failure) < 0)
		return -1;
	return check_masks(p);
}

int plan_make(const struct policy *policy, const struct plan_context *context, struct plan *out,
              struct failure *failure)
{
	struct planning p = { policy, context, out, failure, UNIX_SOCKETS_NONE, false };

	out->direct = plan_is_direct(policy);
	out->backend = out->direct ? "direct" : "bwrap";
	if (resolve(policy, &context->resolve, &out->resolved, failure) < 0)
		return -1;
	if (out->resolved.refused) {
		*failure = out->resolved.refusal;
		return -1;
	}
	if (check_cwd(&p) < 0 || check_helper(&p) < 0 || plan_network(&p) < 0)
		return -1;
	plan_limits(&p);
	if (out->direct) {
		out->home = context->resolve.private_home;
		out->flags = REQUEST_DIRECT | (out->flags & REQUEST_CGROUP_PROCESSES);
		return 0;
	}
	if (plan_unix_sockets(&p) < 0)
		return -1;
	return plan_view(&p);
}

void plan_release(struct plan *plan)
{
	resolved_release(&plan->resolved);
	arena_release(&plan->arena);
	memset(plan, 0, sizeof *plan);
}
