/*
 * What the filesystem shows, remembered while something is resolved: a tree of
 * names in which each one is looked up at most once, so that one resolution sees
 * one consistent picture, and 5,000 rules in a few directories cost 5,000 lookups.
 *
 * There are two kinds.  The host tree is the filesystem itself.  A view tree lies on
 * top of a host tree and shows, at redirected nodes, other parts of it: it is what
 * a command sees under remapping rules.
 *
 * No lookup follows a symbolic link unnoticed: directories are opened with
 * openat2(RESOLVE_NO_SYMLINKS), or component by component on kernels before 5.6.
 */
#ifndef EXECSANDBOX_TREE_H
#define EXECSANDBOX_TREE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "arena.h"

/* As the kernel's MAXSYMLINKS: path_resolution(7). */
#define TREE_LINKS_MAX 40

enum node_kind {
	NODE_UNKNOWN,
	NODE_MISSING,
	NODE_CLOSED, /* below a directory that the caller may not search */
	NODE_DIRECTORY,
	NODE_FILE,
	NODE_OTHER,
	NODE_LINK,
};

struct candidate; /* resolve_internal.h */

struct node {
	struct node *parent; /* NULL at the root */
	struct node *chain;  /* of the hash bucket */
	struct node *host;   /* what stands behind it; itself in a host tree */
	const char *name;
	const char *target;      /* NODE_LINK: its text */
	struct candidate *rules; /* placed here, see resolve_internal.h */
	struct candidate *best;  /* the one that counts */
	dev_t device;
	ino_t inode;
	mode_t mode;
	uid_t owner;
	uint32_t hash;
	uint32_t depth; /* components; 0 at the root */
	uint32_t name_length;
	uint32_t path_length; /* of the whole path, at the root 0 */
	enum node_kind kind;
	bool known;       /* device, inode, mode and owner are filled in */
	bool pinned;      /* kind is given, the filesystem is not asked */
	bool rules_below; /* something is placed at a proper descendant */
	bool judged;      /* `changeable` is known */
	bool changeable;
};

/* Directories that are kept open: names in them cost one system call each. */
#define TREE_OPEN_MAX 64
struct open_directory {
	struct node *node; /* NULL: none */
	int fd;
};

struct tree {
	struct arena *arena;
	struct tree *host; /* NULL in a host tree */
	struct node *root;
	struct node **buckets;
	size_t bucket_count;
	size_t node_count;
	struct open_directory open[TREE_OPEN_MAX];
	bool no_openat2;
};

struct walk {
	struct node *node;                  /* where the path leads; never a NODE_LINK */
	struct node *links[TREE_LINKS_MAX]; /* traversed, in order */
	size_t link_count;
};

/* 0 or ENOMEM. The tree lives in ARENA; HOST is NULL for a host tree. */
int tree_init(struct tree *tree, struct arena *arena, struct tree *host);
void tree_close(struct tree *tree);

/* The child of PARENT (not looked up yet), or NULL when memory is exhausted. */
struct node *tree_child(struct tree *tree, struct node *parent, const char *name, size_t length);

/*
 * Looks NODE's own name up without following it: kind, target, device … are known
 * then.  0 or an errno; absence, and a directory that may not be searched, are not errors.
 */
int tree_look(struct tree *tree, struct node *node);

/*
 * Follows PATH from FROM (from the root if it is absolute) as path_resolution(7)
 * does.  Where something does not exist or cannot be searched, the rest is lexical.
 * Returns 0, or ELOOP, ENAMETOOLONG, ENOMEM, or another errno that prevented it;
 * WALK->links then holds what was traversed before.
 */
int tree_walk(struct tree *tree, struct node *from, const char *path, struct walk *walk);

/* Makes NODE, of a view, show HOST, which was looked up; before anything below NODE was. */
void tree_redirect(struct node *node, struct node *host);

/* Declares what NODE is, whatever the filesystem shows. 0 or an errno. */
int tree_pin(struct tree *tree, struct node *node, enum node_kind kind);

/* Writes NODE's path into BUFFER, of PATH_MAX bytes, and returns it. */
const char *tree_text(const struct node *node, char *buffer);
/* The same in ARENA; NULL when memory is exhausted. */
const char *tree_copy_text(const struct node *node, struct arena *arena);

/* What of the host stands behind NODE, or would; NULL when it has no path, or without memory. */
struct node *tree_host(struct tree *tree, struct node *node);

/* Opens NODE's own object (it must not be a link) with FLAGS; a descriptor or -1 with errno. */
int tree_open(struct tree *tree, struct node *node, int flags);

/* Whether the caller could change names in directory NODE, as path_changeable. */
bool tree_changeable(struct tree *tree, struct node *node);

/* Opens PATH, relative to DIRECTORY, with FLAGS, refusing (ELOOP) to follow any link. */
int tree_open_plain(int directory, const char *path, int flags, bool *no_openat2);

#endif
