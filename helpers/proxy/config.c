#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "filter_wire.h"

enum { CONFIG_MOST = 64 * 1024 * 1024 };

static char *read_whole(int fd, size_t size)
{
	char *bytes = malloc(size);
	size_t have = 0;

	while (bytes != NULL && have < size) {
		ssize_t length = pread(fd, bytes + have, size - have, (off_t)have);

		if (length <= 0) {
			free(bytes);
			return NULL;
		}
		have += (size_t)length;
	}
	return bytes;
}

/* The string at *TEXT, which moves to the next one; NULL at the end. */
static const char *next_string(const char **text, const char *end)
{
	const char *string = *text;

	if (string == end)
		return NULL;
	*text += strlen(string) + 1;
	return string;
}

static const struct host_pattern *read_patterns(const char **text, const char *end, size_t count)
{
	/* Each takes a byte at least. */
	struct host_pattern *patterns =
		count > (size_t)(end - *text) ? NULL : calloc(count + 1, sizeof *patterns);

	for (size_t i = 0; patterns != NULL && i < count; i++) {
		const char *string = next_string(text, end);

		if (string == NULL || host_pattern_parse(string, &patterns[i]) != NULL) {
			free(patterns);
			return NULL;
		}
	}
	return patterns;
}

int config_read(int fd, struct config *config)
{
	struct filter_config head;
	const char *text, *end;

	if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head || head.magic != FILTER_MAGIC ||
	    head.version != FILTER_VERSION || head.size <= sizeof head || head.size > CONFIG_MOST)
		return -1;
	text = read_whole(fd, head.size);
	if (text == NULL || text[head.size - 1] != '\0')
		return -1; /* all of it goes with the process */
	end = text + head.size;
	text += sizeof head;
	config->nameservers = next_string(&text, end);
	config->rules.allow_count = head.allow_count;
	config->rules.deny_count = head.deny_count;
	config->rules.allow = read_patterns(&text, end, head.allow_count);
	if (config->rules.allow == NULL)
		return -1;
	config->rules.deny = read_patterns(&text, end, head.deny_count);
	return config->rules.deny == NULL || text != end ? -1 : 0;
}
