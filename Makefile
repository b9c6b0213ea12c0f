# execsandbox
#
#   make              the core for one Lua, and the helper, into build/
#   make demo         set up what is missing, build, show a sandbox at work
#   make test         set up what is missing, build, run every spec
#   make install      PREFIX= DESTDIR= LUADIR= LIBDIR=
#   make -s env       shell exports that make a checkout usable
#   make lint, make format, make check-sanitize, make bench, make clean
#
# LUA is 5.1, 5.2, 5.3, 5.4 or luajit, or the path of an interpreter. Everything that is built for
# one Lua lives in a directory of its own, so that no object of another is ever taken.

LUA = 5.4
BUILD = build
PREFIX = /usr/local
DESTDIR =

# For packagers: CC, CFLAGS, CPPFLAGS and LDFLAGS are theirs; WERROR= lets warnings be warnings.
CFLAGS ?= -O2 -g
WERROR = -Werror
INSTALL = install
PKG_CONFIG = pkg-config

# One word of a shell command.
quote = '$(subst ','\'',$(1))'

# --- Which Lua -------------------------------------------------------------------------------------

LUAS = 5.1 5.2 5.3 5.4 luajit
# A path is asked what it is: some systems call every version just `lua`.
LUA_NAME := $(if $(filter $(LUA),$(LUAS)),$(LUA),$(shell $(call quote,$(LUA)) -e \
	'print(type(jit) == "table" and "luajit" or (_VERSION:gsub("^Lua ", "")))'))
ifeq ($(filter $(LUA_NAME),$(LUAS)),)
$(error LUA=$(LUA) is neither one of $(LUAS) nor the path of such an interpreter)
endif
LUA_VERSION := $(LUA_NAME:luajit=5.1)
LUA_COMMAND := $(if $(filter luajit,$(LUA_NAME)),luajit,lua$(LUA_VERSION))
LUA_BIN = $(if $(filter $(LUA),$(LUAS)),$(LUA_COMMAND),$(LUA))

# The names that systems give to its pkg-config file.
LUA_PC_NAMES = $(if $(filter luajit,$(LUA_NAME)),luajit,lua$(LUA_VERSION) lua-$(LUA_VERSION) \
	lua$(subst .,,$(LUA_VERSION)) lua)
LUA_PC := $(shell for name in $(LUA_PC_NAMES); do \
	$(PKG_CONFIG) --exists "$$name" 2>/dev/null || continue; \
	[ $(LUA_NAME) = luajit ] && { echo "$$name"; break; }; \
	case $$($(PKG_CONFIG) --modversion "$$name") in \
	($(LUA_VERSION)|$(LUA_VERSION).*) echo "$$name"; break;; esac; done)
LUA_INCDIR =
LUA_CPPFLAGS := $(if $(LUA_INCDIR),-I$(call quote,$(LUA_INCDIR)),$(if $(LUA_PC),$(shell \
	$(PKG_CONFIG) --cflags $(LUA_PC)),-I/usr/include/$(LUA_COMMAND)))
# Only programs that embed Lua (some specs) link it; the core takes what its host has.
LUA_LIBS := $(if $(LUA_PC),$(shell $(PKG_CONFIG) --libs $(LUA_PC)),-l$(LUA_COMMAND))

LUADIR = $(PREFIX)/share/lua/$(LUA_VERSION)
LIBDIR = $(PREFIX)/lib/lua/$(LUA_VERSION)

# --- Flags -----------------------------------------------------------------------------------------

SECCOMP_INCDIR =
SECCOMP_LIBDIR =

HARDEN = -fstack-protector-strong
FORTIFY = -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
# SANITIZE=1: address and undefined behaviour in whatever is loaded by a host. The helper is static
# and runs where no library exists, so there undefined behaviour traps, which needs no runtime.
ifneq ($(SANITIZE),)
CFLAGS = -O1 -g
FORTIFY =
SANITIZE_HOSTED = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SANITIZE_STATIC = -fsanitize=undefined -fsanitize-undefined-trap-on-error
endif

WARN = -Wall -Wextra -Wshadow $(WERROR)
# Ours come after the packager's, so that -fPIC from outside does not undo -fPIE.
# For quoted names only: there is a spawn.h of ours, and one of libc.
INCLUDE = -iquote csrc
COMMON = $(CPPFLAGS) -D_GNU_SOURCE $(FORTIFY) $(INCLUDE)
CORE_COMPILE = $(CC) $(COMMON) $(LUA_CPPFLAGS) $(CFLAGS) -std=c11 $(WARN) $(HARDEN) \
	-fvisibility=hidden -fPIC $(SANITIZE_HOSTED)
CORE_LINK = $(CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE_HOSTED) -shared \
	-Wl,-z,relro,-z,now,-z,nodelete,-z,noexecstack,--as-needed
# The helper is executed twice for a run. A program of musl's starts in half the time of one of
# glibc's, so musl-gcc builds it where there is one; HELPER_LIBC= takes the ordinary compiler.
# Its wrapper knows no -static-pie: the start files for that are named here.
MUSL_DIR := $(dir $(shell sed -n 's/.*-specs[ ="]*\([^" ]*\).*/\1/p' "$$(command -v musl-gcc)" \
	2>/dev/null </dev/null))
HELPER_LIBC := $(if $(wildcard $(MUSL_DIR)rcrt1.o),musl)
HELPER_HARDEN = -Wl,-z,relro,-z,now,-z,noexecstack
ifeq ($(HELPER_LIBC),musl)
HELPER_CC = musl-gcc
HELPER_INCLUDE = $(BUILD)/helper/include
HELPER_LINK = $(HELPER_CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE_STATIC) -fPIE -nostartfiles -static \
	-Wl,-pie,--no-dynamic-linker,-z,text $(HELPER_HARDEN) $(MUSL_DIR)rcrt1.o $(MUSL_DIR)crti.o
HELPER_LINK_END = $(MUSL_DIR)crtn.o
else
HELPER_CC = $(CC)
HELPER_INCLUDE =
HELPER_LINK = $(HELPER_CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE_STATIC) -fPIE -static-pie $(HELPER_HARDEN)
HELPER_LINK_END =
endif
HELPER_COMPILE = $(HELPER_CC) $(COMMON) $(if $(HELPER_INCLUDE),-isystem $(HELPER_INCLUDE)) \
	$(CFLAGS) -std=c11 $(WARN) $(HARDEN) -fPIE $(SANITIZE_STATIC)

# What makes the helper's filters runs here, while building, and nowhere else.
HOSTCC = $(CC)
GENERATE_BUILD = $(HOSTCC) -std=c11 -D_GNU_SOURCE $(WARN) -O1 \
	$(if $(SECCOMP_INCDIR),-I$(call quote,$(SECCOMP_INCDIR)))
GENERATE_LIBS = $(if $(SECCOMP_LIBDIR),-L$(call quote,$(SECCOMP_LIBDIR))) -lseccomp

# The filtering proxy takes names apart and servers up by two libraries: c-ares, and llhttp, which is
# distributed as C sources. Without them it is left out, and so is what the library does with it.
LLHTTP_DIR = /usr/share/llhttp
LLHTTP_INCDIR = $(patsubst %/llhttp.h,%,$(firstword $(wildcard $(addsuffix /llhttp.h,$(LLHTTP_DIR) \
	$(LLHTTP_DIR)/../include $(LLHTTP_DIR)/../include/llhttp /usr/share/include/llhttp \
	/usr/include /usr/local/include))))
LLHTTP_SOURCES = $(foreach name,api http llhttp,$(LLHTTP_DIR)/$(name).c)
CARES_LIBS := $(shell $(PKG_CONFIG) --libs libcares 2>/dev/null)
CARES_CPPFLAGS := $(shell $(PKG_CONFIG) --cflags libcares 2>/dev/null)
HAS_PROXY := $(if $(CARES_LIBS),$(if $(LLHTTP_INCDIR),$(if \
	$(filter 3,$(words $(wildcard $(LLHTTP_SOURCES)))),yes)))
PROXY_CPPFLAGS = -iquote helpers $(CARES_CPPFLAGS) -isystem $(LLHTTP_INCDIR)
PROXY_COMPILE = $(CC) $(COMMON) $(PROXY_CPPFLAGS) $(CFLAGS) -std=c11 $(WARN) $(HARDEN) -fPIE \
	$(SANITIZE_HOSTED)
# Not ours to warn about. Its strict half is what is wanted.
LLHTTP_COMPILE = $(CC) $(CPPFLAGS) $(FORTIFY) -DLLHTTP_STRICT_MODE=1 -isystem $(LLHTTP_INCDIR) \
	$(CFLAGS) -w $(HARDEN) -fPIE
PROXY_LINK = $(CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE_HOSTED) -pie $(HELPER_HARDEN)

# --- Files -----------------------------------------------------------------------------------------

B = $(BUILD)/$(LUA_NAME)
CORE = $(B)/execsandbox/core.so
HELPER = $(BUILD)/execsandbox-helper
# The core looks for the helper in its own directory, installed or not.
HELPER_BESIDE = $(B)/execsandbox/execsandbox-helper
# And the helper looks for the filtering proxy in its own.
PROXY = $(if $(HAS_PROXY),$(BUILD)/execsandbox-proxy)
PROXY_BESIDE = $(if $(HAS_PROXY),$(B)/execsandbox/execsandbox-proxy)

# Some are both programs': the core cleans up after a helper that was killed.
CORE_SOURCES := $(sort $(wildcard csrc/*.c)) helpers/claim.c helpers/home.c helpers/remove_tree.c
HELPER_SOURCES := $(sort $(wildcard helpers/*.c))
LUA_SOURCES := $(sort $(shell find lua -name '*.lua'))
CORE_OBJECTS = $(CORE_SOURCES:%.c=$(B)/obj/%.o)
GENERATE_SOURCES := $(sort $(wildcard helpers/generate/*.c))
GENERATE = $(BUILD)/helper/generate
PROXY_SOURCES := $(sort $(wildcard helpers/proxy/*.c)) helpers/flow.c csrc/host_pattern.c
PROXY_OBJECTS = $(PROXY_SOURCES:%.c=$(BUILD)/proxy/%.o) $(BUILD)/proxy/llhttp/api.o \
	$(BUILD)/proxy/llhttp/http.o $(BUILD)/proxy/llhttp/llhttp.o
HELPER_OBJECTS = $(HELPER_SOURCES:%.c=$(BUILD)/helper/%.o) $(BUILD)/helper/filters.o

all: $(CORE) $(HELPER_BESIDE) $(or $(PROXY_BESIDE),no-proxy)

# Also where an earlier build had one.
no-proxy:
	@rm -f $(BUILD)/execsandbox-proxy $(B)/execsandbox/execsandbox-proxy
	@echo 'note: no filtering proxy (network allow and deny lists): it takes c-ares with its' \
		'headers and the sources of llhttp (LLHTTP_DIR=); Debian: libc-ares-dev node-llhttp'

# A stamp holds the words of the commands; what depends on it is made again when they change.
stamp = @mkdir -p $(@D) && printf '%s\n' $(call quote,$(1)) >$@.$$$$ && \
	if cmp -s $@.$$$$ $@; then rm -f $@.$$$$; else mv -f $@.$$$$ $@; fi

$(B)/flags: FORCE
	$(call stamp,$(CORE_COMPILE) $(CORE_LINK) $(CORE_OBJECTS))

$(BUILD)/helper/flags: FORCE
	$(call stamp,$(HELPER_COMPILE) $(HELPER_LINK) $(HELPER_LINK_END) $(GENERATE_BUILD) $(GENERATE_LIBS) $(HELPER_OBJECTS))

$(BUILD)/proxy/flags: FORCE
	$(call stamp,$(PROXY_COMPILE) $(PROXY_LINK) $(LLHTTP_COMPILE) $(LLHTTP_DIR) $(CARES_LIBS) $(PROXY_OBJECTS))

$(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(CORE_COMPILE) -MMD -MP -c -o $@ $<

# The kernel's headers, which musl-gcc does not look for where the others are.
$(BUILD)/helper/include:
	@mkdir -p $@.new
	@for name in linux/version.h asm/unistd.h asm-generic/errno.h; do \
		file=$$(echo "#include <$$name>" | $(CC) -M -x c - | tr ' ' '\n' | grep "/$$name$$") && \
		ln -sfn "$$(dirname "$$file")" "$@.new/$${name%%/*}" || exit; done
	@mv $@.new $@

$(BUILD)/helper/%.o: %.c $(BUILD)/helper/flags | $(HELPER_INCLUDE)
	@mkdir -p $(@D)
	$(HELPER_COMPILE) -MMD -MP -c -o $@ $<

$(GENERATE): $(GENERATE_SOURCES) $(wildcard helpers/generate/*.h) csrc/request.h $(BUILD)/helper/flags
	$(GENERATE_BUILD) -o $@ $(GENERATE_SOURCES) $(GENERATE_LIBS)

$(BUILD)/helper/filters.c: $(GENERATE)
	$(GENERATE) >$@.new
	@mv -f $@.new $@

$(BUILD)/helper/filters.o: $(BUILD)/helper/filters.c helpers/filter.h $(BUILD)/helper/flags | $(HELPER_INCLUDE)
	$(HELPER_COMPILE) -iquote helpers -c -o $@ $<

$(BUILD)/proxy/%.o: %.c $(BUILD)/proxy/flags
	@mkdir -p $(@D)
	$(PROXY_COMPILE) -MMD -MP -c -o $@ $<

$(BUILD)/proxy/llhttp/%.o: $(LLHTTP_DIR)/%.c $(BUILD)/proxy/flags
	@mkdir -p $(@D)
	$(LLHTTP_COMPILE) -c -o $@ $<

# Linked aside and renamed: a program that runs the old one keeps it.
$(CORE): $(CORE_OBJECTS) $(B)/flags
	@mkdir -p $(@D)
	$(CORE_LINK) -o $@.new $(CORE_OBJECTS)
	@mv -f $@.new $@

$(HELPER): $(HELPER_OBJECTS) $(BUILD)/helper/flags
	@mkdir -p $(@D)
	$(HELPER_LINK) -o $@.new $(HELPER_OBJECTS) $(HELPER_LINK_END)
	@mv -f $@.new $@

$(HELPER_BESIDE): $(HELPER)
	@mkdir -p $(@D)
	@$(INSTALL) -m 755 $(HELPER) $@.new && mv -f $@.new $@

ifneq ($(HAS_PROXY),)
$(PROXY): $(PROXY_OBJECTS) $(BUILD)/proxy/flags
	@mkdir -p $(@D)
	$(PROXY_LINK) -o $@.new $(PROXY_OBJECTS) $(CARES_LIBS)
	@mv -f $@.new $@

$(PROXY_BESIDE): $(PROXY)
	@mkdir -p $(@D)
	@$(INSTALL) -m 755 $(PROXY) $@.new && mv -f $@.new $@
endif

-include $(CORE_OBJECTS:.o=.d) $(HELPER_OBJECTS:.o=.d) $(PROXY_OBJECTS:.o=.d)

# --- Using it ----------------------------------------------------------------------------------------

# Prefixed to what is set already; an unset path ends in the interpreter's default, which is what
# the empty entry stands for. A LUA_PATH_5_4 would hide LUA_PATH, so it gets the same where it is set.
ENV_SCRIPT = \
	say() { printf "export %s='%s'\n" "$$1" "$$(printf %s "$$2" | sed "s/'/'\\\\''/g")"; }; \
	path() { case $$3 in "$$2"*) say "$$1" "$$3";; *) say "$$1" "$$2;$$3";; esac; }; \
	lua=$$top/lua/?.lua\;$$top/lua/?/init.lua; so=$$top/$(B)/?.so; \
	path LUA_PATH "$$lua" "$${LUA_PATH:-;}"; path LUA_CPATH "$$so" "$${LUA_CPATH:-;}"; \
	[ -z "$${$(LUA_PATH_V)+x}" ] || path $(LUA_PATH_V) "$$lua" "$${$(LUA_PATH_V)}"; \
	[ -z "$${$(LUA_CPATH_V)+x}" ] || path $(LUA_CPATH_V) "$$so" "$${$(LUA_CPATH_V)}"; \
	say EXECSANDBOX_HELPER "$$top/$(HELPER_BESIDE)"
LUA_PATH_V = LUA_PATH_$(subst .,_,$(LUA_VERSION))
LUA_CPATH_V = LUA_CPATH_$(subst .,_,$(LUA_VERSION))

env:
	@$(MAKE) --no-print-directory all >&2
	@top=$(call quote,$(CURDIR)); $(ENV_SCRIPT)

TO_LIB = $(call quote,$(DESTDIR)$(LIBDIR)/execsandbox)
TO_LUA = $(call quote,$(DESTDIR)$(LUADIR))

install: all
	$(INSTALL) -d $(TO_LIB)
	$(INSTALL) -m 755 $(CORE) $(TO_LIB)/core.so
	$(INSTALL) -m 755 $(HELPER) $(TO_LIB)/execsandbox-helper
	$(if $(HAS_PROXY),$(INSTALL) -m 755 $(PROXY) $(TO_LIB)/execsandbox-proxy,rm -f $(TO_LIB)/execsandbox-proxy)
	for file in $(LUA_SOURCES:lua/%=%); do \
		$(INSTALL) -D -m 644 "lua/$$file" $(TO_LUA)/"$$file" || exit; done

uninstall:
	rm -f $(TO_LIB)/core.so $(TO_LIB)/execsandbox-helper $(TO_LIB)/execsandbox-proxy
	for file in $(LUA_SOURCES:lua/%=%); do rm -f $(TO_LUA)/"$$file" || exit; done
	for dir in $(TO_LIB) $(TO_LUA)/execsandbox; do \
		[ ! -d "$$dir" ] || find "$$dir" -depth -type d -empty -delete; done

# --- Set-up, demo, specs -----------------------------------------------------------------------------

SETUP = CC=$(call quote,$(CC)) LUA_BIN=$(call quote,$(LUA_BIN)) LUA_NAME=$(LUA_NAME) \
	LUA_INCDIR=$(call quote,$(LUA_INCDIR)) LLHTTP_DIR=$(call quote,$(LLHTTP_DIR)) sh spec/setup.sh

setup:
	@$(SETUP) build
setup-test:
	@$(SETUP) build test
setup-lint:
	@$(SETUP) build lint

# A set-up can bring what this file looked for when it was read: hence a make of its own after it.
demo: setup
	@$(MAKE) --no-print-directory run-demo
run-demo: all
	@top=$(call quote,$(CURDIR)); eval "$$($(ENV_SCRIPT))"; $(call quote,$(LUA_BIN)) spec/demo.lua

test: setup-test
	@$(MAKE) --no-print-directory run-specs

# Under the sanitizers an interpreter built with them: nothing has to be preloaded, so nothing
# that a command inherits differs from a plain run.
SPEC_LUA = $(if $(SANITIZE),$(CURDIR)/$(B)/spec/hosts/interpreter,$(LUA_BIN))
SPEC =
JOBS =
run-specs: all programs
	@SPEC_LUA=$(call quote,$(SPEC_LUA)) SPEC_BUILD=$(call quote,$(CURDIR)/$(B)) \
		SPEC_LUA_NAME=$(LUA_NAME) CC=$(call quote,$(CC)) sh spec/run $(if $(JOBS),-j $(JOBS)) $(SPEC)

# Specs of the scripts have nothing to show there.
check-sanitize: setup-test
	@$(MAKE) --no-print-directory run-specs BUILD=$(BUILD)/sanitize SANITIZE=1 SPEC="$(or $(SPEC), \
		$(filter-out spec/install_spec.lua spec/tools_spec.lua,$(sort $(wildcard spec/*_spec.lua))))"

# Programs of the specs and benchmarks. A file may carry a line ` * cc: FLAGS`, which is added to
# the compiler's arguments, and ` * machine: NAME`, without which (`uname -m`) it is not built.
# attack/ runs inside sandboxes, hosts/ embed Lua and load the core, bench/ is for `make bench`.
PROGRAM_SOURCES := $(sort $(wildcard spec/attack/*.c spec/hosts/*.c spec/bench/*.c))
MACHINE := $(shell uname -m)
OTHER_MACHINE := $(shell grep -lE '^ \* machine: ' $(PROGRAM_SOURCES) /dev/null | \
	xargs -r grep -LE '^ \* machine: $(MACHINE)$$')
PROGRAMS := $(patsubst %.c,$(B)/%,$(filter-out $(OTHER_MACHINE),$(PROGRAM_SOURCES)))
PROGRAM_COMPILE = $(CC) -D_GNU_SOURCE -std=c11 $(WARN) -O2 -g $(INCLUDE)
file_flags = $$(sed -n 's|^ \* cc: ||p' $<)

programs: $(PROGRAMS)

$(B)/program-flags: FORCE
	$(call stamp,$(PROGRAM_COMPILE) $(LUA_CPPFLAGS) $(LUA_LIBS) $(SANITIZE_HOSTED))

$(B)/spec/attack/%: spec/attack/%.c $(B)/program-flags
	@mkdir -p $(@D)
	$(PROGRAM_COMPILE) -MMD -MP -MT $@ -o $@ $< $(file_flags)

$(B)/spec/hosts/%: spec/hosts/%.c $(B)/program-flags
	@mkdir -p $(@D)
	$(PROGRAM_COMPILE) $(LUA_CPPFLAGS) $(SANITIZE_HOSTED) -MMD -MP -MT $@ -o $@ $< $(file_flags) \
		-Wl,-E $(LUA_LIBS)

$(B)/spec/bench/%: spec/bench/%.c $(B)/program-flags
	@mkdir -p $(@D)
	$(PROGRAM_COMPILE) -MMD -MP -MT $@ -o $@ $< $(file_flags)

-include $(PROGRAMS:%=%.d)

bench: setup-test
	@$(MAKE) --no-print-directory run-bench
run-bench: all programs
	@top=$(call quote,$(CURDIR)); eval "$$($(ENV_SCRIPT))"; \
	export LUA_PATH="$$top/?.lua;$$top/?/init.lua;$$LUA_PATH" SPEC_BUILD="$$top/$(B)"; \
	for file in $(if $(BENCH),$(BENCH),spec/bench/*_bench.lua); do \
		[ -f "$$file" ] || continue; $(call quote,$(LUA_BIN)) "$$file" || exit; done

# --- Lint --------------------------------------------------------------------------------------------

lint: setup-lint
	@$(MAKE) --no-print-directory run-lint
run-lint:
	@CPPFLAGS=$(call quote,$(COMMON) $(LUA_CPPFLAGS) $(PROXY_CPPFLAGS)) sh spec/lint

format:
	find csrc helpers spec -name '*.[ch]' | xargs clang-format -i

clean:
	rm -rf $(BUILD)

FORCE:
.DELETE_ON_ERROR:
.PHONY: all no-proxy env install uninstall setup setup-test setup-lint demo run-demo test run-specs \
	check-sanitize programs bench run-bench lint run-lint format clean FORCE
