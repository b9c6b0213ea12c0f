/* Special rules: what each names on this host, for this cwd and environment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "account.h"
#include "path.h"
#include "resolve_internal.h"

/* What a program needs of a system to start, and to know names, times and certificates. */
static const char *const minimal_paths[] = {
	"/usr",
	"/bin",
	"/sbin",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",
	"/etc/ld.so.cache",
	"/etc/ld.so.conf",
	"/etc/ld.so.conf.d",
	"/etc/alternatives",
	"/etc/passwd",
	"/etc/group",
	"/etc/nsswitch.conf",
	"/etc/hosts",
	"/etc/host.conf",
	"/etc/resolv.conf",
	"/etc/localtime",
	"/etc/timezone",
	"/etc/ssl/certs",
	"/etc/ssl/openssl.cnf",
	"/etc/ca-certificates",
	"/etc/ca-certificates.conf",
	"/etc/pki",
	"/etc/protocols",
	"/etc/services",
	"/etc/mime.types",
	"/etc/terminfo",
	"/etc/locale.alias",
	"/etc/inputrc",
	"/nix/store",
	"/run/current-system/sw",
};

struct placed_special {
	struct resolver *resolver;
	const struct rule *rule;
	size_t number;
};

static struct placing placing_of(const struct placed_special *special, const char *path,
                                 unsigned flags)
{
	return (struct placing){ .written = path,
		                     .access = special->rule->access,
		                     .origin = ORIGIN_SPECIAL,
		                     .index = special->number,
		                     .flags = flags };
}

static int place(const struct placed_special *special, const struct walk *walk, const char *path,
                 unsigned flags)
{
	struct placing placing = placing_of(special, path, flags);

	return resolver_place(special->resolver, walk, &placing) == NULL ? -1 : 0;
}

/* Places the special on an object that exists; one that is missing is noted. */
static int place_existing(const struct placed_special *special, const char *path, unsigned flags)
{
	struct resolver *resolver = special->resolver;
	struct walk walk;
	int followed = resolver_walk(resolver, path, flags, &walk);

	if (followed <= 0)
		return followed;
	if (!resolver_exists(resolver, walk.node))
		return resolver_note(resolver, path, "%s is left out: it does not exist.", path);
	return place(special, &walk, path, flags);
}

static int place_minimal(const struct placed_special *special)
{
	for (size_t i = 0; i < sizeof minimal_paths / sizeof *minimal_paths; i++) {
		struct walk walk;
		int followed =
			resolver_walk(special->resolver, minimal_paths[i], CANDIDATE_OPTIONAL, &walk);
		if (followed < 0)
			return -1;
		/* No host has all of them: what is missing is not worth a note. */
		if (followed > 0 && resolver_exists(special->resolver, walk.node) &&
		    place(special, &walk, minimal_paths[i], CANDIDATE_OPTIONAL) != 0)
			return -1;
	}
	return 0;
}

/* ---- home --------------------------------------------------------------------------- */

/* The home directory that the user database names, in the scratch arena; NULL for none. */
static int passwd_home(struct resolver *resolver, const char **home)
{
	/* Far longer than any path, and what else there is in a record. */
	size_t size = 16384;
	char *buffer = arena_alloc(&resolver->scratch, size);
	int error;

	*home = NULL;
	if (buffer == NULL)
		return resolver_memory(resolver);
	*home = account_home(geteuid(), buffer, size);
	error = errno;
	if (*home != NULL || error == 0)
		return 0;
	if (error == ENOMEM)
		return resolver_memory(resolver);
	failure_policy(resolver->failure, "The account's home directory cannot be found out: %s.",
	               strerror(error));
	resolver->failure->errnum = error;
	return -1;
}

/*
 * 1 and WALK where PATH may be taken for somebody's home.  One that cannot be looked up
 * counts where it is to be denied.
 */
static int find_home(const struct placed_special *special, const char *path, unsigned flags,
                     struct walk *walk)
{
	int followed;

	if (path == NULL || *path != '/')
		return 0;
	followed = resolver_walk(special->resolver, path, flags, walk);
	if (followed <= 0)
		return followed;
	return walk->node->parent != NULL &&
	       (walk->node->kind == NODE_DIRECTORY ||
	        (walk->node->kind == NODE_CLOSED && special->rule->access == ACCESS_DENY));
}

/*
 * A deny covers both homes, so that a wrong HOME uncovers nothing; a grant goes to the
 * one the command will take for its home.
 */
static int place_home(const struct placed_special *special)
{
	struct resolver *resolver = special->resolver;
	bool deny = special->rule->access == ACCESS_DENY;
	unsigned flags = deny ? CANDIDATE_YIELDS : 0;
	const char *homes[2] = { resolver->context->home, NULL };
	size_t found = 0;

	if (passwd_home(resolver, &homes[1]) != 0)
		return -1;
	for (size_t i = 0; i < 2 && (deny || found == 0); i++) {
		struct walk walk;
		int is_home = find_home(special, homes[i], flags, &walk);
		if (is_home < 0)
			return -1;
		if (is_home == 0)
			continue;
		found++;
		if (place(special, &walk, homes[i], flags) != 0)
			return -1;
	}
	return found > 0 ? 0 : resolver_note(resolver, "~", "home is left out: there is none.");
}

/* ---- the environment's directories ------------------------------------------------------ */

static int place_search_directory(const struct placed_special *special, const char *path)
{
	const unsigned flags = CANDIDATE_OPTIONAL | CANDIDATE_WIDENS;
	struct resolver *resolver = special->resolver;
	struct walk walk;
	int followed = resolver_walk(resolver, path, flags, &walk);

	if (followed <= 0)
		return followed;
	if (walk.node->kind != NODE_DIRECTORY)
		return resolver_note(resolver, path, "%s of PATH is left out: it is no directory.", path);
	if (walk.node->parent == NULL)
		return resolver_note(resolver, path, "%s of PATH is left out: it is the root.", path);
	return place(special, &walk, path, flags);
}

static int place_search_path(const struct placed_special *special)
{
	const char *rest = special->resolver->context->search_path;

	while (rest != NULL && *rest != '\0') {
		size_t length = strcspn(rest, ":");
		char *path = arena_copy(&special->resolver->scratch, rest, length);
		if (path == NULL)
			return resolver_memory(special->resolver);
		if (*path == '/' && place_search_directory(special, path) != 0)
			return -1;
		rest += length + (rest[length] == ':');
	}
	return 0;
}

static bool is_private_tmp(const struct candidate *rule)
{
	return rule != NULL && rule->origin == ORIGIN_PRIVATE_TMP;
}

/* A directory for temporary files; under private_tmp it is a private one itself. */
static int place_temporary(const struct placed_special *special, const char *path)
{
	struct resolver *resolver = special->resolver;
	struct placing placing = { .written = path,
		                       .access = ACCESS_WRITE,
		                       .origin = ORIGIN_PRIVATE_TMP,
		                       .flags = CANDIDATE_OWN };
	struct walk walk;
	int followed = resolver_walk(resolver, path, 0, &walk);

	if (followed <= 0)
		return followed;
	for (const struct node *node = walk.node; node != NULL; node = node->parent)
		for (const struct candidate *rule = node->rules; rule != NULL; rule = rule->next)
			if (is_private_tmp(rule)) {
				if (node == walk.node || special->rule->access == ACCESS_DENY)
					return 0;
				return resolver_place(resolver, &walk, &placing) == NULL ? -1 : 0;
			}
	if (!resolver_exists(resolver, walk.node))
		return resolver_note(resolver, path, "%s is left out: it does not exist.", path);
	return place(special, &walk, path, 0);
}

static int is_directory(struct resolver *resolver, const char *path)
{
	struct walk walk;
	int followed = resolver_walk(resolver, path, CANDIDATE_OPTIONAL, &walk);

	return followed <= 0 ? followed : walk.node->kind == NODE_DIRECTORY;
}

static int place_tmpdir(const struct placed_special *special)
{
	const char *path = special->resolver->context->tmpdir;
	int usable;

	/* Then TMPDIR is the private one, which is granted; what denies is about the host's. */
	if (special->resolver->context->private_home != NULL && special->rule->access != ACCESS_DENY)
		return 0;
	usable = path == NULL || *path != '/' ? 0 : is_directory(special->resolver, path);

	if (usable < 0)
		return -1;
	return place_temporary(special, usable ? path : "/tmp");
}

/* ---- workspace ----------------------------------------------------------------------------- */

static int place_below_root(const struct placed_special *special, const char *root)
{
	struct resolver *resolver = special->resolver;
	const char *subpath = special->rule->subpath;
	unsigned flags = subpath != NULL ? CANDIDATE_EXPLICIT : 0;
	const char *path = subpath == NULL ? root
	                                   : arena_format(&resolver->scratch, "%s/%s",
	                                                  strcmp(root, "/") == 0 ? "" : root, subpath);
	struct walk walk;
	int followed;

	if (path == NULL)
		return resolver_memory(resolver);
	followed = resolver_walk(resolver, path, flags, &walk);
	if (followed <= 0)
		return followed;
	/* A root that is missing was refused already. */
	if (subpath == NULL && !resolver_exists(resolver, walk.node))
		return 0;
	return place(special, &walk, path, flags);
}

static int place_workspace_roots(const struct placed_special *special)
{
	const struct strings *roots = &special->resolver->policy->workspace_roots;

	for (size_t i = 0; i < roots->count; i++)
		if (place_below_root(special, roots->items[i]) != 0)
			return -1;
	return 0;
}

/* ---- all -------------------------------------------------------------------------------------- */

static int place_special(const struct placed_special *special)
{
	switch (special->rule->special) {
	case SPECIAL_ROOT:
		return place_existing(special, "/", 0);
	case SPECIAL_MINIMAL:
		return place_minimal(special);
	case SPECIAL_HOME:
		return place_home(special);
	case SPECIAL_SEARCH_PATH:
		return place_search_path(special);
	case SPECIAL_WORKING_DIRECTORY:
		return place_existing(special, special->resolver->context->cwd,
		                      CANDIDATE_OPTIONAL | CANDIDATE_WIDENS);
	case SPECIAL_WORKSPACE_ROOTS:
		return place_workspace_roots(special);
	case SPECIAL_TMPDIR:
		return place_tmpdir(special);
	case SPECIAL_SLASH_TMP:
		return place_temporary(special, "/tmp");
	}
	return 0;
}

int resolve_specials(struct resolver *resolver)
{
	const struct policy *policy = resolver->policy;

	for (size_t i = 0; i < policy->rule_count; i++) {
		struct placed_special special = { resolver, &policy->rules[i], i + 1 };
		if (policy->rules[i].form == RULE_SPECIAL && place_special(&special) != 0)
			return -1;
	}
	return 0;
}
