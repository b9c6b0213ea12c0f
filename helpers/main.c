/*
 * execsandbox-helper: what runs between the host and the sandboxed command.
 *
 * `supervise` is started by the core, `inner` by the supervisor through the launcher,
 * both with the descriptors that request.h lists.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inner.h"
#include "supervisor.h"

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "supervise") == 0)
		return supervisor_main();
	if (argc == 2 && strcmp(argv[1], "inner") == 0)
		return inner_main();
	dprintf(2, "execsandbox-helper: a part of execsandbox, not a program to be run by hand\n");
	return 2;
}
