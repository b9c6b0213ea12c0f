/* The supervisor's part in a run's proxies: the relay, and the filtering proxy. */
#ifndef EXECSANDBOX_PROXIES_H
#define EXECSANDBOX_PROXIES_H

#include "protocol.h"
#include "supervisor_state.h"

/* Takes what the core sent ahead, where there is a PROXY_FILTER. Returns 0, or -1 with errno. */
int proxies_prepare(struct supervisor *self);

/*
 * Serves the COUNT sockets of MESSAGE_LISTENERS, which are ours, or closes them where the run
 * is ending; where they cannot be served nothing is launched.
 */
void proxies_serve(struct supervisor *self, const struct message *message, const int *listeners,
                   int count);

/* Closes every connection and listener, at once: the run was cut short. Idempotent. */
void proxies_cut(struct supervisor *self);

/* Nothing is left of the sandbox: the filtering proxy, which would go on, is told. */
void proxies_dismiss(struct supervisor *self);

/* Ends what is left. Idempotent. */
void proxies_finish(struct supervisor *self);

#endif
