/* The supervisor's side of the control socket: records to the core, commands from it. */
#ifndef EXECSANDBOX_RECORDS_H
#define EXECSANDBOX_RECORDS_H

#include "supervisor_state.h"

/* Sends what is due, as far as the socket takes it. */
void records_send(struct supervisor *self);

/* Takes and obeys what the core has said. */
void records_hear(struct supervisor *self);

#endif
