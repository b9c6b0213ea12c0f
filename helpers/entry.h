/* An entry of a directory as getdents64(2) gives it, which allocates nothing. */
#ifndef EXECSANDBOX_ENTRY_H
#define EXECSANDBOX_ENTRY_H

#include <stdint.h>

struct entry {
	uint64_t inode;
	int64_t offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

#endif
