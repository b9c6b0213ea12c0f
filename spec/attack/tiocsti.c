/*
 * Fakes terminal input on a terminal of its own: TIOCSTI and TIOCLINUX, with and without
 * garbage in the upper half of the request (the kernel looks at the lower one only:
 * CVE-2019-10063).  Prints "NAME ERRNO" lines; 0 is success.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void attempt(const char *name, int fd, unsigned long request, void *argument)
{
	long result = syscall(SYS_ioctl, fd, request, argument);

	printf("%s %d\n", name, result < 0 ? errno : 0);
}

int main(void)
{
	char byte = 'x', subcode[2] = { 2, 0 };
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	int terminal;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0) {
		perror("/dev/ptmx");
		return 1;
	}
	setsid();
	terminal = open(ptsname(master), O_RDWR); /* becomes our controlling terminal */
	if (terminal < 0) {
		perror("pts");
		return 1;
	}
	attempt("control", terminal, TIOCGWINSZ, &(struct winsize){ 0 });
	attempt("tiocsti", terminal, TIOCSTI, &byte);
	attempt("tioclinux", terminal, TIOCLINUX, subcode);
#if __SIZEOF_LONG__ == 8
	attempt("tiocsti_garbage", terminal, TIOCSTI | 0x100000000, &byte);
	attempt("tiocsti_ones", terminal, TIOCSTI | 0xffffffff00000000, &byte);
	attempt("tioclinux_garbage", terminal, TIOCLINUX | 0x4000000000000000, subcode);
#endif
	return 0;
}
