/* What stands before the launcher starts: channels, placeholders, settings. */
#ifndef EXECSANDBOX_PREPARATION_H
#define EXECSANDBOX_PREPARATION_H

#include "supervisor_state.h"

/* Opens the pipes and sockets to launcher and inner stage. Returns 0, or -1 with errno. */
int preparation_channels(struct supervisor *self);

/* Closes what belongs to the launcher, once it has its copies. */
void preparation_close_child_ends(struct supervisor *self);

/*
 * Makes or joins the placeholders, and completes the checks that name them.  Returns 0, or
 * -1 with the failure noted.
 */
int preparation_claims(struct supervisor *self);

/* Makes the private home of a direct run. Returns 0, or -1 with the failure noted. */
int preparation_home(struct supervisor *self);

/*
 * Sends what the inner stage finds when it starts.  The locks of the placeholders
 * (and of a private home) go along: they last as long as somebody of us is alive, so that a killed supervisor's placeholder
 * cannot be removed under the mounts of a sandbox that is still ending.  Returns 0, or -1
 * with errno.
 */
int preparation_settings(struct supervisor *self);

#endif
