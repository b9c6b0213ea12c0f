/* The automaton of a set of patterns, made deterministic on the way. */
#include <stdlib.h>
#include <string.h>

#include "glob.h"

/*
 * Beyond this many states, patterns and names are made to be expensive: the walk fails
 * rather than the host's memory.
 */
enum { MACHINE_STATES_MAX = 1 << 16 };

struct machine_state {
	uint32_t match;           /* lowest number, directories_only left out */
	uint32_t directory_match; /* lowest number */
	uint32_t hash;
	bool dead;
};

struct glob_machine {
	const struct globs *globs;
	unsigned char classes[256]; /* bytes that no pattern tells apart */
	size_t class_count;
	size_t words; /* of one set */
	struct machine_state *states;
	uint64_t *sets;        /* words per state */
	uint32_t *transitions; /* class_count per state */
	size_t count;
	size_t room;
	uint32_t *table; /* state + 1 by hash; a power of two */
	size_t table_size;
	uint64_t *scratch; /* one set */
	uint32_t *stack;
	bool exhausted; /* memory was */
};

static bool has_byte(const struct glob_state *state, unsigned byte)
{
	return state->bytes[byte / 64] >> byte % 64 & 1;
}

/* Refines the classes so that STATE's set is a union of them. */
static void refine(struct glob_machine *machine, const struct glob_state *state)
{
	int renamed[256][2];
	int count = 0;

	memset(renamed, -1, sizeof renamed);
	for (unsigned byte = 0; byte < 256; byte++) {
		int *name = &renamed[machine->classes[byte]][has_byte(state, byte)];
		if (*name < 0)
			*name = count++;
		machine->classes[byte] = (unsigned char)*name;
	}
	machine->class_count = (size_t)count;
}

static void make_classes(struct glob_machine *machine)
{
	machine->class_count = 1;
	for (size_t i = 0; i < machine->globs->count; i++)
		if (machine->globs->states[i].operation == GLOB_BYTES && machine->class_count < 256)
			refine(machine, &machine->globs->states[i]);
}

static bool contains(const uint64_t *set, uint32_t place)
{
	return set[place / 64] >> place % 64 & 1;
}

/* Adds PLACE to the scratch set, and what is reached from it without reading. */
static void add_place(struct glob_machine *machine, uint32_t place)
{
	const struct glob_state *places = machine->globs->states;
	size_t depth = 0;

	machine->stack[depth++] = place;
	while (depth > 0) {
		place = machine->stack[--depth];
		if (contains(machine->scratch, place))
			continue;
		machine->scratch[place / 64] |= UINT64_C(1) << place % 64;
		if (places[place].operation == GLOB_SPLIT) {
			machine->stack[depth++] = places[place].other;
			machine->stack[depth++] = places[place].next;
		}
	}
}

static uint32_t hash_set(const struct glob_machine *machine)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < machine->words; i++) {
		hash = (hash ^ machine->scratch[i]) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	return (uint32_t)hash;
}

static bool make_larger(struct glob_machine *machine, size_t room)
{
	struct machine_state *states = reallocarray(machine->states, room, sizeof *states);
	uint64_t *sets;
	uint32_t *transitions;

	if (states == NULL)
		return false;
	machine->states = states;
	sets = reallocarray(machine->sets, room, machine->words * sizeof *sets);
	if (sets == NULL)
		return false;
	machine->sets = sets;
	transitions =
		reallocarray(machine->transitions, room, machine->class_count * sizeof *transitions);
	if (transitions == NULL)
		return false;
	machine->transitions = transitions;
	return true;
}

static bool make_room(struct glob_machine *machine)
{
	size_t room = machine->room == 0 ? 32 : machine->room * 2;
	uint32_t *table;

	if (machine->count < machine->room)
		return true;
	if (room > MACHINE_STATES_MAX)
		return false;
	table = make_larger(machine, room) ? calloc(room * 2, sizeof *table) : NULL;
	if (table == NULL) {
		machine->exhausted = true;
		return false;
	}
	free(machine->table);
	machine->table = table;
	machine->table_size = room * 2;
	machine->room = room;
	for (size_t i = 0; i < machine->count; i++) {
		size_t slot = machine->states[i].hash % machine->table_size;
		while (table[slot] != 0)
			slot = (slot + 1) % machine->table_size;
		table[slot] = (uint32_t)i + 1;
	}
	return true;
}

static void describe(const struct glob_machine *machine, struct machine_state *state)
{
	state->match = state->directory_match = GLOB_NONE;
	state->dead = true;
	for (uint32_t place = 0; place < machine->globs->count; place++) {
		const struct glob_state *at = &machine->globs->states[place];
		if (!contains(machine->scratch, place))
			continue;
		if (at->operation == GLOB_BYTES)
			state->dead = false;
		if (at->operation != GLOB_MATCH)
			continue;
		if (at->pattern < state->directory_match)
			state->directory_match = at->pattern;
		if (!at->directories_only && at->pattern < state->match)
			state->match = at->pattern;
	}
}

/* The state of the scratch set. */
static uint32_t intern(struct glob_machine *machine)
{
	uint32_t hash = hash_set(machine);
	size_t bytes = machine->words * sizeof *machine->sets;
	struct machine_state *state;
	size_t slot;

	if (!make_room(machine))
		return GLOB_NONE;
	for (slot = hash % machine->table_size; machine->table[slot] != 0;
	     slot = (slot + 1) % machine->table_size) {
		uint32_t found = machine->table[slot] - 1;
		if (machine->states[found].hash == hash &&
		    memcmp(machine->sets + found * machine->words, machine->scratch, bytes) == 0)
			return found;
	}
	state = &machine->states[machine->count];
	state->hash = hash;
	describe(machine, state);
	memcpy(machine->sets + machine->count * machine->words, machine->scratch, bytes);
	memset(machine->transitions + machine->count * machine->class_count, 0xff,
	       machine->class_count * sizeof *machine->transitions);
	machine->table[slot] = (uint32_t)machine->count + 1;
	return (uint32_t)machine->count++;
}

struct glob_machine *glob_machine_new(const struct globs *globs)
{
	struct glob_machine *machine = calloc(1, sizeof *machine);

	if (machine == NULL)
		return NULL;
	machine->globs = globs;
	machine->words = globs->count / 64 + 1;
	machine->scratch = calloc(machine->words, sizeof *machine->scratch);
	/* Every place puts at most two on the stack, once. */
	machine->stack = calloc(globs->count * 2 + 2, sizeof *machine->stack);
	if (machine->scratch == NULL || machine->stack == NULL) {
		glob_machine_free(machine);
		return NULL;
	}
	make_classes(machine);
	return machine;
}

void glob_machine_free(struct glob_machine *machine)
{
	if (machine == NULL)
		return;
	free(machine->states);
	free(machine->sets);
	free(machine->transitions);
	free(machine->table);
	free(machine->scratch);
	free(machine->stack);
	free(machine);
}

uint32_t glob_machine_start(struct glob_machine *machine)
{
	memset(machine->scratch, 0, machine->words * sizeof *machine->scratch);
	for (size_t i = 0; i < machine->globs->start_count; i++)
		add_place(machine, machine->globs->starts[i]);
	return intern(machine);
}

static uint32_t step(struct glob_machine *machine, uint32_t state, unsigned char byte)
{
	size_t class = machine->classes[byte];
	uint32_t target = machine->transitions[state * machine->class_count + class];

	if (target != GLOB_NONE)
		return target;
	memset(machine->scratch, 0, machine->words * sizeof *machine->scratch);
	for (size_t word = 0; word < machine->words; word++) {
		uint64_t rest = machine->sets[state * machine->words + word];
		for (; rest != 0; rest &= rest - 1) {
			uint32_t place = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(rest);
			const struct glob_state *at = &machine->globs->states[place];
			if (at->operation == GLOB_BYTES && has_byte(at, byte))
				add_place(machine, at->next);
		}
	}
	target = intern(machine);
	if (target != GLOB_NONE)
		machine->transitions[state * machine->class_count + class] = target;
	return target;
}

uint32_t glob_machine_read(struct glob_machine *machine, uint32_t state, const char *bytes,
                           size_t length)
{
	for (size_t i = 0; i < length && state != GLOB_NONE; i++)
		state = step(machine, state, (unsigned char)bytes[i]);
	return state;
}

uint32_t glob_machine_match(const struct glob_machine *machine, uint32_t state, bool directory)
{
	const struct machine_state *at = &machine->states[state];

	return directory ? at->directory_match : at->match;
}

int glob_machine_failure(const struct glob_machine *machine, const char *display,
                         struct failure *failure)
{
	if (machine->exhausted)
		return failure_memory(failure);
	return failure_policy(failure,
	                      "The deny globs cannot be matched below %s: the patterns are too "
	                      "complex.",
	                      display);
}

bool glob_machine_dead(const struct glob_machine *machine, uint32_t state)
{
	return machine->states[state].dead;
}
