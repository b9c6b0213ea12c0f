/*
 * Bounds-checked access to the request.
 *
 * request_view_open checks every offset, list and count once; what it accepted can be
 * used without further checks.  The supervisor and the inner stage each check for
 * themselves.
 */
#ifndef EXECSANDBOX_REQUEST_VIEW_H
#define EXECSANDBOX_REQUEST_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "request.h"

struct request_view {
	struct request *request; /* NULL where none is mapped */
	size_t size;
};

/*
 * Maps and checks the request in the memory file FD.  Returns NULL, or a sentence that
 * says what is wrong with it.
 */
const char *request_view_open(struct request_view *view, int fd);

/* The string at OFFSET, one of the request's own. */
const char *request_string(const struct request_view *view, uint32_t offset);

/* The bytes of LIST. */
const char *request_bytes(const struct request_view *view, const struct request_list *list);

const struct request_claim *request_claims(const struct request_view *view);
const struct request_proxy *request_proxies(const struct request_view *view);
struct request_check *request_checks(const struct request_view *view);
struct request_mount *request_mounts(const struct request_view *view);

static inline bool request_has(const struct request_view *view, unsigned flag)
{
	return (view->request->flags & flag) != 0;
}

/*
 * The strings of LIST as execve(2) wants them, in fresh memory with room for EXTRA
 * more before the NULL; *COUNT, where given, is how many there are.  NULL when memory
 * is exhausted.
 */
char **request_vector(const struct request_view *view, const struct request_list *list,
                      size_t extra, size_t *count);

#endif
