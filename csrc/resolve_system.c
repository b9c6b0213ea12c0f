/* The places that are the sandbox's own: /dev, /proc, a private /tmp or home, and a hidden /run. */
#include <string.h>

#include "path.h"
#include "resolve_internal.h"

/* What stands in every sandbox's /dev (bwrap(1), --dev), and may be used. */
static const struct own_node {
	const char *path;
	enum access access;
	enum node_kind kind;
} own_nodes[] = {
	{ "/dev", ACCESS_READ, NODE_DIRECTORY },      { "/dev/null", ACCESS_WRITE, NODE_OTHER },
	{ "/dev/zero", ACCESS_WRITE, NODE_OTHER },    { "/dev/full", ACCESS_WRITE, NODE_OTHER },
	{ "/dev/random", ACCESS_WRITE, NODE_OTHER },  { "/dev/urandom", ACCESS_WRITE, NODE_OTHER },
	{ "/dev/tty", ACCESS_WRITE, NODE_OTHER },     { "/dev/shm", ACCESS_WRITE, NODE_DIRECTORY },
	{ "/dev/pts", ACCESS_WRITE, NODE_DIRECTORY }, { "/dev/ptmx", ACCESS_WRITE, NODE_OTHER },
};

/* The node of a literal path: nothing on the way is looked up. */
static struct node *literal_node(struct resolver *resolver, const char *path)
{
	struct node *node = resolver->view->root;
	const char *name;
	size_t length;

	while (node != NULL && (name = path_next(&path, &length)) != NULL)
		node = tree_child(resolver->view, node, name, length);
	return node;
}

/* Places a rule on the sandbox's own object, whatever the host has at that path. */
static int place_own(struct resolver *resolver, const struct own_node *own, enum origin origin)
{
	struct placing placing = {
		.written = own->path, .access = own->access, .origin = origin, .flags = CANDIDATE_OWN
	};
	struct walk walk = { .node = literal_node(resolver, own->path) };

	if (walk.node == NULL || tree_pin(resolver->view, walk.node, own->kind) != 0)
		return resolver_memory(resolver);
	return resolver_place(resolver, &walk, &placing) == NULL ? -1 : 0;
}

static int place_device(struct resolver *resolver, const char *path)
{
	struct placing placing = { .written = path, .access = ACCESS_WRITE, .origin = ORIGIN_DEVICE };
	struct walk walk;
	int followed = resolver_walk(resolver, path, 0, &walk);

	if (followed <= 0)
		return followed;
	if (!node_is_within(walk.node, literal_node(resolver, "/dev")) || walk.node->depth < 2)
		return resolver_refuse(resolver, "", "The device %s leads out of /dev.", path);
	if (!resolver_exists(resolver, walk.node))
		return resolver_refuse(resolver, "Leave it out of `devices`.",
		                       "The device %s does not exist.", path);
	return resolver_place(resolver, &walk, &placing) == NULL ? -1 : 0;
}

static int place_dev(struct resolver *resolver)
{
	const struct strings *devices = &resolver->policy->devices;

	for (size_t i = 0; i < sizeof own_nodes / sizeof *own_nodes; i++)
		if (place_own(resolver, &own_nodes[i], ORIGIN_DEV) != 0)
			return -1;
	for (size_t i = 0; i < devices->count; i++)
		if (place_device(resolver, devices->items[i]) != 0)
			return -1;
	return 0;
}

static int place_proc(struct resolver *resolver)
{
	struct own_node proc = { "/proc", ACCESS_WRITE, NODE_DIRECTORY };

	if (resolver->policy->mount_proc == CHOICE_NO)
		proc.access = ACCESS_DENY;
	return place_own(resolver, &proc, ORIGIN_PROC);
}

static int place_private_tmp(struct resolver *resolver, const char *path)
{
	struct placing placing = { .written = path,
		                       .access = ACCESS_WRITE,
		                       .origin = ORIGIN_PRIVATE_TMP,
		                       .flags = CANDIDATE_OWN };
	struct walk walk;
	int followed = resolver_walk(resolver, path, 0, &walk);

	if (followed <= 0)
		return followed;
	return resolver_place(resolver, &walk, &placing) == NULL ? -1 : 0;
}

/*
 * A directory that is made for the run, with the command's HOME and TMPDIR in it.  Its name
 * is new, so that no rule is about it; those about directories above it are overruled.
 */
int resolve_private_home(struct resolver *resolver)
{
	struct placing placing = { .written = resolver->context->private_home,
		                       .access = ACCESS_WRITE,
		                       .origin = ORIGIN_PRIVATE_HOME,
		                       .flags = CANDIDATE_OWN };
	struct walk walk;
	int followed;

	if (placing.written == NULL)
		return 0;
	followed = resolver_walk(resolver, placing.written, 0, &walk);
	if (followed <= 0)
		return followed;
	if (tree_pin(resolver->view, walk.node, NODE_DIRECTORY) != 0)
		return resolver_memory(resolver);
	return resolver_place(resolver, &walk, &placing) == NULL ? -1 : 0;
}

static int place_everything(struct resolver *resolver)
{
	struct placing everything = { .written = "/",
		                          .access = ACCESS_WRITE,
		                          .origin = ORIGIN_FILESYSTEM };

	return resolver_place_path(resolver, &everything);
}

int resolve_system(struct resolver *resolver)
{
	const struct policy *policy = resolver->policy;

	if (policy->filesystem == FILESYSTEM_UNRESTRICTED && place_everything(resolver) != 0)
		return -1;
	if (policy->private_tmp &&
	    (place_private_tmp(resolver, "/tmp") != 0 || place_private_tmp(resolver, "/var/tmp") != 0))
		return -1;
	return place_dev(resolver) != 0 || place_proc(resolver) != 0 ? -1
	                                                             : resolve_private_home(resolver);
}

/* ---- /run ------------------------------------------------------------------------- */

/* What programs need of /run that is no socket: name resolution, and NixOS's system. */
static const char *const reopened[] = { "/etc/resolv.conf", "/run/current-system",
	                                    "/run/opengl-driver" };

static int reopen(struct resolver *resolver, const char *path, const struct node *runtime)
{
	struct placing placing = { .written = path,
		                       .access = ACCESS_READ,
		                       .origin = ORIGIN_PRIVATE_RUNTIME,
		                       .flags = CANDIDATE_OPTIONAL };
	struct walk walk;
	int followed = resolver_walk(resolver, path, CANDIDATE_OPTIONAL, &walk);

	if (followed <= 0)
		return followed;
	if (!node_is_within(walk.node, runtime) || walk.node == runtime ||
	    !resolver_exists(resolver, walk.node) || access_at(walk.node) == ACCESS_DENY)
		return 0;
	return resolver_place(resolver, &walk, &placing) == NULL ? -1 : 0;
}

static int hide(struct resolver *resolver, const char *path)
{
	struct placing placing = { .written = path,
		                       .access = ACCESS_DENY,
		                       .origin = ORIGIN_PRIVATE_RUNTIME };
	struct walk walk;
	int followed = resolver_walk(resolver, path, CANDIDATE_OPTIONAL, &walk);

	/* A link leads to what is hidden itself, or to what is not the runtime directory. */
	if (followed <= 0 || walk.link_count > 0 || walk.node->kind != NODE_DIRECTORY ||
	    access_at(walk.node) == ACCESS_DENY)
		return followed < 0 ? -1 : 0;
	/* First what stays open, while the rules still say to what degree it was. */
	for (size_t i = 0; i < sizeof reopened / sizeof *reopened; i++)
		if (reopen(resolver, reopened[i], walk.node) != 0)
			return -1;
	return resolver_place(resolver, &walk, &placing) == NULL ? -1 : 0;
}

int resolve_runtime(struct resolver *resolver)
{
	if (!resolver->policy->private_runtime)
		return 0;
	return hide(resolver, "/run") != 0 ? -1 : hide(resolver, "/var/run");
}
