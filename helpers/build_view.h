/*
 * Building the view of the sandbox, by object.
 *
 * bubblewrap mounts by path: what stands at a path when it gets there may be another
 * thing than what the policy was resolved for, put there by a run in the same workspace.
 * Here both ends of each mount are opened first, without following a link anywhere,
 * compared with what resolution saw, and mounted as what was opened.  Needs open_tree,
 * move_mount and fsopen (Linux 5.2) and mount_setattr (5.12).
 */
#ifndef EXECSANDBOX_BUILD_VIEW_H
#define EXECSANDBOX_BUILD_VIEW_H

#include <stddef.h>

#include "request_view.h"

/*
 * Builds the view of the request's mounts and makes it the root of this process.  Needs
 * CAP_SYS_ADMIN over the mount namespace.  Returns 0; or -1 with errno (0 where none applies)
 * and a sentence in TEXT: then nothing may be run.
 */
int build_view(const struct request_view *view, char *text, size_t size);

#endif
