/* core.prepare and core.plan: the requests of the Lua layer, turned into runs and plans. */
#ifndef EXECSANDBOX_LAUNCH_H
#define EXECSANDBOX_LAUNCH_H

#include "compat.h"

/* Creates the metatables; once per state. */
void launch_register(lua_State *L);

/*
 * core.prepare(policy, request) → run, capture of stdout, capture of stderr (nil when merged);
 * or nil, err.  Everything is opened and checked, nothing is started: run:launch() does.
 *
 * `request` comes from lua/execsandbox/request.lua, which has checked what users gave:
 *   argv = { string, … }            environment = { "NAME=value", … }
 *   cwd = absolute path             home, tmpdir, search_path, private_home = string or nil
 *   helper = absolute path          launchers = { absolute path, … }
 *   helper_named, launcher_named, proc_mountable, own_view, merge, leave, progress, retain = boolean
 *   timeout, kill_grace, drain_grace = seconds   capture_byte_limit = bytes
 *   interval = seconds between ticks, or nil
 *   input = string, or input_file = absolute path, or input_inherit or input_pipe = true, or none
 *   capture_directory = existing directory for the capture files
 *   proxies = list as in proxies.h, or nil
 *   filter_program = absolute path, nameservers = string or nil: for a filtering proxy
 */
int launch_prepare(lua_State *L);

/* core.plan(policy, request) → table of what would be launched, or nil, err */
int launch_plan(lua_State *L);

#endif
