/*
 * The parts of resolution and what they share.  Nothing outside resolve*.c includes this.
 *
 * Candidates are rules that ask for a place in the tree of names; each node keeps
 * those placed on it and the one that counts.  So the access that applies somewhere
 * is found by climbing to the nearest node with a rule.
 */
#ifndef EXECSANDBOX_RESOLVE_INTERNAL_H
#define EXECSANDBOX_RESOLVE_INTERNAL_H

#include "resolve.h"
#include "tree.h"

enum candidate_flag {
	CANDIDATE_EXPLICIT = 1 << 0, /* names this very path: beats what is automatic */
	CANDIDATE_YIELDS = 1 << 1,   /* a deny that any grant at the same path beats */
	CANDIDATE_OPTIONAL = 1 << 2, /* dropped with a note where something else would be refused */
	CANDIDATE_WIDENS = 1 << 3,   /* never takes away what rules above it grant */
	CANDIDATE_OWN = 1 << 4,      /* the sandbox's own object, not the host's */
};

struct candidate {
	struct candidate *next; /* at the same node */
	struct node *node;
	struct node *source; /* in the host tree; NULL where the rule does not remap */
	const char *written;
	struct node **links; /* traversed on the way to node */
	size_t link_count;
	struct node **source_links; /* traversed on the way to source, in the host tree */
	size_t source_link_count;
	size_t index;
	enum access access;
	enum origin origin;
	unsigned flags;
	bool dropped;
};

struct resolver {
	const struct policy *policy;
	const struct resolve_context *context;
	struct resolved *out;
	struct failure *failure;
	struct arena scratch;
	struct tree host;
	struct tree overlay;
	struct tree *view; /* &host, or &overlay where rules remap */
	struct candidate **candidates;
	size_t count;
	size_t room;
	struct candidate **remaps; /* the first remap_count candidates remap */
	size_t remap_count;
	struct walk cwd;               /* of the context's cwd */
	struct node **workspace_roots; /* canonical; those that exist */
	size_t workspace_root_count;
	size_t note_room;
	int unseen; /* errno where it could not be told whether a directory is a placeholder; or 0 */
};

/* Most functions return 0, or -1 with resolver->failure filled. */

int resolver_memory(struct resolver *resolver);

/* Records a note about PATH (copied). */
int resolver_note(struct resolver *resolver, const char *path, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Refuses to launch, unless something was refused before. Always 0. */
int resolver_refuse(struct resolver *resolver, const char *remedy, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Walks the view from cwd (or the root).  1: done; 0: it cannot be followed, which
 * was refused (or, for an OPTIONAL rule, noted); -1: failure.
 */
int resolver_walk(struct resolver *resolver, const char *path, unsigned flags, struct walk *walk);

/* What a caller knows about a rule to place. */
struct placing {
	const char *written;
	enum access access;
	enum origin origin;
	size_t index;
	unsigned flags;
};

/* Places a rule where WALK leads; returns the candidate, or NULL with failure filled. */
struct candidate *resolver_place(struct resolver *resolver, const struct walk *walk,
                                 const struct placing *placing);
/* Walks to placing->written and places it there. */
int resolver_place_path(struct resolver *resolver, const struct placing *placing);

void candidate_drop(struct candidate *candidate);

/* The rule that applies at NODE (at its parent, with `above`), or NULL. */
const struct candidate *rule_at(const struct node *node);
const struct candidate *rule_above(const struct node *node);
enum access access_at(const struct node *node);
enum access access_above(const struct node *node);

/* Whether something stands at NODE, for rules: a placeholder of ours does not count. */
bool resolver_exists(struct resolver *resolver, struct node *node);
enum object resolver_object(struct resolver *resolver, struct node *node);

/* Whether a command under these rules could replace LINK, a link of tree VIEW (or of the host). */
bool resolver_can_replace(struct resolver *resolver, struct node *link);

/*
 * The rule that remaps NODE, or NULL.  Whatever rule decides about access there, it is
 * the source that is shown.
 */
const struct candidate *remap_at(const struct node *node);

/* Refuses where CANDIDATE is about something that a closed directory hides for now only. */
void resolver_check_closed(struct resolver *resolver, const struct candidate *candidate);

bool node_is_within(const struct node *node, const struct node *ancestor);

/* The parts, in the order in which they are done. */
int resolve_remaps(struct resolver *resolver);   /* resolve.c */
int resolve_system(struct resolver *resolver);   /* resolve_system.c: /, /dev, /proc, private_tmp */
int resolve_specials(struct resolver *resolver); /* resolve_specials.c */
int resolve_private_home(struct resolver *resolver); /* resolve_system.c: private_home */
int resolve_runtime(struct resolver *resolver);      /* resolve_system.c: private_runtime */
int resolve_metadata(struct resolver *resolver);     /* resolve_metadata.c */
int resolve_globs(struct resolver *resolver);        /* resolve_glob.c */

/* Collects what is left into resolver->out. */
int resolve_collect(struct resolver *resolver); /* resolve_collect.c */

#endif
