/* Finding rules by path in a finished resolution; resolve.h has what others use. */
#ifndef EXECSANDBOX_RESOLVED_TABLE_H
#define EXECSANDBOX_RESOLVED_TABLE_H

#include "resolve.h"

/* Builds the table over the sorted rules. 0, or -1 when memory is exhausted. */
int resolved_index(struct resolved *resolved);

#endif
