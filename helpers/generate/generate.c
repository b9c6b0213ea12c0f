/*
 * Writes the table of filter programs (filter.h) as C to standard output: one for every
 * combination of flags that the rules look at.  Runs on the machine that builds, and makes
 * programs for the same kind of machine.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/request.h"
#include "filter_build.h"

static const unsigned networks[] = { 0, REQUEST_NET_SOCKETS, REQUEST_NET_TCP_ONLY };

static void write_program(unsigned flags)
{
	static struct filter_program program;
	unsigned i;

	if (filter_build(flags, &program) < 0) {
		perror("filter_build");
		exit(1);
	}
	printf("static const struct sock_filter program_%x[] = {\n", flags);
	for (i = 0; i < program.count; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", program.instructions[i].code,
		       program.instructions[i].jt, program.instructions[i].jf, program.instructions[i].k);
	printf("};\n\n");
}

static void for_every(void (*act)(unsigned flags))
{
	unsigned network, more;

	for (network = 0; network < sizeof networks / sizeof *networks; network++)
		for (more = 0; more < 4; more++)
			act(networks[network] | ((more & 1) ? REQUEST_UNIX_SOCKETS : 0) |
			    ((more & 2) ? REQUEST_ALLOW_USERNS : 0));
}

static void write_entry(unsigned flags)
{
	printf("\t{ 0x%x, sizeof program_%x / sizeof *program_%x, program_%x },\n", flags, flags, flags,
	       flags);
}

int main(void)
{
	printf("/* Made by helpers/generate; see filter_build.c for the rules. */\n");
#if defined __x86_64__
	printf("#ifndef __x86_64__\n#error \"made for another machine\"\n#endif\n");
#elif defined __aarch64__
	printf("#ifndef __aarch64__\n#error \"made for another machine\"\n#endif\n");
#endif
	printf("#include \"filter.h\"\n\n");
	for_every(write_program);
	printf("const struct filter filters[] = {\n");
	for_every(write_entry);
	printf("};\n\nconst unsigned filter_count = sizeof filters / sizeof *filters;\n");
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
