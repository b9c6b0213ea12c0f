#include "bwrap.h"

#include <string.h>

#include "request.h"

/* bubblewrap 0.8.0 and later take no more (MAX_ARGS in bubblewrap.c), `--args` included. */
enum { BWRAP_MAX_WORDS = 9000, BWRAP_SPARE_WORDS = 32 };

/* Where the helper is shown in a view whose /proc is hidden, so that it can be executed. */
#define INNER_PATH "/proc/execsandbox-helper"

struct translation {
	const struct mounts *mounts;
	const struct bwrap_options *options;
	struct bwrap_plan *plan;
	struct arena *arena;
};

static void word(struct translation *t, const char *text)
{
	words_add(&t->plan->arguments, text);
}

static void permissions(struct translation *t, unsigned mode)
{
	char *text = arena_format(t->arena, "%04o", mode);

	word(t, "--perms");
	if (text == NULL)
		t->plan->arguments.exhausted = true;
	else
		word(t, text);
}

static void bind(struct translation *t, const char *option, const struct mount *mount)
{
	word(t, option);
	word(t, mount->source);
	word(t, mount->path);
}

/*
 * An empty regular file of mode 0000: a device as a mask would be taken for one by
 * git and others.  bubblewrap reads the content from a descriptor and closes it, so that
 * each mask has its own.
 */
static void mask_file(struct translation *t, const struct mount *mount)
{
	char *number = arena_format(t->arena, "%u", EMPTY_FILE_FIRST + t->plan->empty_files++);

	permissions(t, 0);
	word(t, "--ro-bind-data");
	if (number == NULL)
		t->plan->arguments.exhausted = true;
	else
		word(t, number);
	word(t, mount->path);
}

static void fresh(struct translation *t, const char *option, const struct mount *mount)
{
	permissions(t, mount->mode);
	word(t, option);
	word(t, mount->path);
}

static void mask_directory(struct translation *t, const struct mount *mount)
{
	bool shows_inner = strcmp(mount->path, "/proc") == 0;

	permissions(t, mount->reopened || shows_inner ? 0111 : 0);
	word(t, "--tmpfs");
	word(t, mount->path);
	if (shows_inner) {
		word(t, "--ro-bind");
		word(t, t->options->inner);
		word(t, INNER_PATH);
		t->plan->inner_path = INNER_PATH;
	}
}

static void mount(struct translation *t, const struct mount *mount)
{
	switch (mount->kind) {
	case MOUNT_BASE:
		break; /* bubblewrap starts with an empty one */
	case MOUNT_BIND_READ:
		bind(t, "--ro-bind", mount);
		break;
	case MOUNT_BIND_WRITE:
	case MOUNT_PIN:
		bind(t, "--bind", mount);
		break;
	case MOUNT_BIND_DEVICE:
		bind(t, "--dev-bind", mount);
		break;
	case MOUNT_MASK_DIRECTORY:
		mask_directory(t, mount);
		break;
	case MOUNT_MASK_FILE:
		mask_file(t, mount);
		break;
	case MOUNT_PRIVATE:
		fresh(t, "--tmpfs", mount);
		break;
	case MOUNT_DIRECTORY:
		fresh(t, "--dir", mount);
		break;
	case MOUNT_DEV:
		word(t, "--dev");
		word(t, mount->path);
		break;
	case MOUNT_PROC:
		word(t, "--proc");
		word(t, mount->path);
		break;
	case MOUNT_LINK:
		word(t, "--symlink");
		word(t, mount->source);
		word(t, mount->path);
		break;
	}
}

/* A fresh directory is writable until everything below it is in place. */
static bool ends_read_only(const struct mount *mount)
{
	return mount->kind == MOUNT_BASE || mount->kind == MOUNT_DEV ||
	       mount->kind == MOUNT_MASK_DIRECTORY;
}

static void translate_mounts(struct translation *t)
{
	size_t i;

	for (i = 0; i < t->mounts->count; i++)
		mount(t, &t->mounts->items[i]);
	for (i = 0; i < t->mounts->count; i++) {
		if (!ends_read_only(&t->mounts->items[i]))
			continue;
		word(t, "--remount-ro");
		word(t, t->mounts->items[i].path);
	}
}

static void translate_namespaces(struct translation *t)
{
	/* Asked for by name: without it a root caller would keep the host's. */
	word(t, "--unshare-user");
	word(t, "--unshare-ipc");
	word(t, "--unshare-uts");
	if (t->options->process_namespace) {
		word(t, "--unshare-pid");
		word(t, "--as-pid-1");
	}
	if (t->options->network_namespace)
		word(t, "--unshare-net");
	word(t, "--die-with-parent"); /* the parent is the supervisor, which has one thread */
	word(t, "--cap-drop");
	word(t, "ALL");
	/* Without it bubblewrap falls back to home or "/"; the inner stage goes to the real cwd. */
	word(t, "--chdir");
	word(t, "/");
}

/*
 * With a view of its own, the inner stage mounts by object, which names that are exchanged
 * meanwhile cannot lead astray, and which costs no walk through all mounts for each.  It
 * needs the capabilities for that, in the sandbox's user namespace, until it is done.
 */
static void translate_own_view(struct translation *t)
{
	static const char *const capabilities[] = { "CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE",
		                                        "CAP_SETPCAP" };
	size_t i;

	for (i = 0; i < sizeof capabilities / sizeof *capabilities; i++) {
		word(t, "--cap-add");
		word(t, capabilities[i]);
	}
	word(t, "--dir");
	word(t, VIEW_ROOT);
	word(t, "--dev-bind");
	word(t, "/");
	word(t, VIEW_HOST);
	t->plan->inner_path = arena_format(t->arena, "%s%s", VIEW_HOST, t->options->inner);
	if (t->plan->inner_path == NULL)
		t->plan->arguments.exhausted = true;
}

int bwrap_plan(const struct mounts *mounts, const struct bwrap_options *options,
               struct arena *arena, struct bwrap_plan *out, struct failure *failure)
{
	struct translation t = { mounts, options, out, arena };

	memset(out, 0, sizeof *out);
	out->launcher.arena = out->arguments.arena = arena;
	words_add(&out->launcher, options->program);
	translate_namespaces(&t);
	if (options->own_view)
		translate_own_view(&t);
	else
		translate_mounts(&t);
	if (out->launcher.exhausted || out->arguments.exhausted)
		return failure_memory(failure);
	if (out->arguments.count > BWRAP_MAX_WORDS - BWRAP_SPARE_WORDS)
		return mounts_too_many(mounts, arena, failure, "%zu words where bubblewrap takes %d",
		                       out->arguments.count, BWRAP_MAX_WORDS);
	return 0;
}
