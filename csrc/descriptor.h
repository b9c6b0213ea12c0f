/* File descriptors that are kept for longer than a call. */
#ifndef EXECSANDBOX_DESCRIPTOR_H
#define EXECSANDBOX_DESCRIPTOR_H

/*
 * FD, which is negative (errno says why) or close-on-exec, under a number above 2.  A host
 * may have 0, 1 or 2 closed, so that what is opened gets these numbers: what the host then
 * writes to its standard output must not go there.  Returns -1 with errno where there is no
 * number; FD is closed then.
 */
int descriptor_lift(int fd);

#endif
