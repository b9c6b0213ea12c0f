/* The Capture that users hold: a captured stream as a Lua object. */
#ifndef EXECSANDBOX_CAPTURE_H
#define EXECSANDBOX_CAPTURE_H

#include "compat.h"
#include "stream.h"

/* Creates the metatables; once per state. */
void capture_register(lua_State *L);

/*
 * Pushes a new Capture without a stream, and returns where the stream goes.  The caller
 * puts a reference there once it has one: nothing can raise in between.
 */
struct stream **capture_push(lua_State *L);

/* capture_decode(bytes) → string, as Lua function: sandbox.decode. */
int capture_decode(lua_State *L);

#endif
