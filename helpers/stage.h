/* What the supervisor hears from the inner stage and from the launcher, and tells the former. */
#ifndef EXECSANDBOX_STAGE_H
#define EXECSANDBOX_STAGE_H

#include "supervisor_state.h"

/* Sends an order of enum order_type, where the inner stage is there. */
void stage_order(struct supervisor *self, uint32_t type, int32_t value);

/* Takes the inner stage's messages, and its end. */
void stage_hear(struct supervisor *self);

/* Takes what the launcher writes to its standard error, as far as there is room to keep it. */
void stage_hear_launcher(struct supervisor *self);

#endif
