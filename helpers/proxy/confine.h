/* What the proxy gives up before it listens to anyone. */
#ifndef EXECSANDBOX_PROXY_CONFINE_H
#define EXECSANDBOX_PROXY_CONFINE_H

/*
 * No core file, no debugger, no new privileges; no other program, no other process, and no file
 * but those below /etc and beside where its links lead, read.  Each as far as this kernel has it:
 * what is refused to the commands does not depend on it.
 */
void confine(void);

#endif
