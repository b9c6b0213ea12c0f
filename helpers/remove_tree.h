/*
 * Removing what a command has left in a directory, however it has left it: links to
 * elsewhere, directories without permissions or deeper than any path can say, mounts.
 *
 * Only descriptors lead on, no link is followed and no mount entered, and at most four
 * descriptors are open.  Depends on libc alone: the core uses it too.
 */
#ifndef EXECSANDBOX_REMOVE_TREE_H
#define EXECSANDBOX_REMOVE_TREE_H

#include <stdint.h>

/*
 * Opens directory NAME in PARENT for reading, and gives its owner all permissions.  Returns a
 * close-on-exec descriptor, or -1 with errno (EXDEV: something is mounted on it).
 */
int remove_tree_open(int parent, const char *name);

/*
 * Removes everything in DIRECTORY, of which the caller is the owner, until DEADLINE of
 * clock.h.  0; 1 where that came first, as it does if somebody keeps adding; or -1 where
 * something stays that is mounted or may not be removed.
 */
int remove_tree(int directory, uint64_t deadline);

#endif
