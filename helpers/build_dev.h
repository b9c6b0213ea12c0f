/* Furnishing the sandbox's own /dev with what is harmless and what programs expect. */
#ifndef EXECSANDBOX_BUILD_DEV_H
#define EXECSANDBOX_BUILD_DEV_H

/*
 * Makes nodes, links and a devpts of its own in the empty directory DEV, with the nodes of
 * the host whose root is HOST.  A node cannot be made in a user namespace (mknod(2)), so
 * each is a bind of the host's.  Returns 0, or -1 with errno.
 */
int build_dev(int dev, int host);

#endif
