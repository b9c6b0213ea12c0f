#include "identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* One line of /proc/self/uid_map (user_namespaces(7)): three numbers; false at garbage. */
static bool read_range(const char *line, unsigned long *inside, unsigned long *outside,
                       unsigned long *length)
{
	char *end;

	*inside = strtoul(line, &end, 10);
	*outside = strtoul(end, &end, 10);
	*length = strtoul(end, &end, 10);
	return *length > 0;
}

bool identity_is_real_root(void)
{
	unsigned long inside, outside, length;
	unsigned long uid = geteuid();
	bool root = uid == 0; /* what to assume where the map cannot be read */
	char line[128];
	FILE *map = fopen("/proc/self/uid_map", "re");

	if (map == NULL)
		return root;
	while (fgets(line, sizeof line, map) != NULL)
		if (read_range(line, &inside, &outside, &length) && uid >= inside && uid - inside < length)
			root = outside + (uid - inside) == 0;
	fclose(map);
	return root;
}
