#!/bin/sh
# Installs what is missing to build (build), test (test) or lint (lint): sh spec/setup.sh GROUP...
#
# What counts is whether a thing works, not which package it came in, so that a machine which has
# everything needs neither apt nor any right. make passes CC, LUA_BIN, LUA_NAME and LUA_INCDIR.
set -u
CC=${CC:-cc}
LUA_NAME=${LUA_NAME:-5.4}
LUA_BIN=${LUA_BIN:-lua$LUA_NAME}
LUA_INCDIR=${LUA_INCDIR:-}
top=$(cd "$(dirname "$0")/.." && pwd) || exit

work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

have() { command -v "$1" >/dev/null 2>&1; }

# compiles SOURCE FLAG...: whether the compiler makes a program of it.
compiles() {
  printf '%s\n' "$1" >"$work/probe.c"
  shift
  # shellcheck disable=SC2086 # CC may be a command with arguments
  $CC -o "$work/probe" "$work/probe.c" "$@" >/dev/null 2>&1
}

# The names that systems give to the pkg-config file of one Lua.
lua_header() { # VERSION
  if [ "$1" = luajit ]; then names=luajit; else
    dotless=$(printf %s "$1" | tr -d .)
    names="lua$1 lua-$1 lua$dotless"
  fi
  flags=-I/usr/include/lua$1
  [ "$1" != luajit ] || flags=-I/usr/include/luajit-2.1
  if [ -n "$LUA_INCDIR" ]; then flags=-I$LUA_INCDIR; else
    for name in $names; do
      if pkg-config --exists "$name" 2>/dev/null; then
        flags=$(pkg-config --cflags "$name")
        break
      fi
    done
  fi
  # shellcheck disable=SC2086 # several flags
  compiles '#include <lua.h>
    int main(void) { return LUA_VERSION_NUM == 0; }' $flags
}

lua_package() { # interpreter|headers VERSION
  case $1-$2 in
  interpreter-luajit) echo luajit ;;
  interpreter-*) echo "lua$2" ;;
  headers-luajit) echo libluajit-5.1-dev ;;
  headers-5.1) echo liblua5.1-0-dev ;;
  headers-*) echo "liblua$2-dev" ;;
  esac
}

missing=
reasons=
# need PACKAGE "GENERIC NAME: REASON" CHECK...: notes the package where the check fails.
need() {
  package=$1 reason=$2
  shift 2
  "$@" && return
  case " $missing " in *" $package "*) return ;; esac
  missing="$missing $package"
  reasons="$reasons$(printf '  %-18s %s' "$package" "$reason")
"
}

wanted=
# want PACKAGE REASON CHECK...: as need, for what is done without where it cannot be installed.
want() {
  have apt-get && { [ "$(id -u)" -eq 0 ] || have sudo; } || return 0
  before=$missing
  need "$@"
  [ "$missing" = "$before" ] || wanted="$wanted $1"
}

has_cares() { pkg-config --exists libcares 2>/dev/null; }
has_llhttp() { [ -f "${LLHTTP_DIR:-/usr/share/llhttp}/llhttp.c" ]; }

need_build() {
  need gcc 'a C11 compiler (gcc)' have "${CC%% *}"
  need libc6-dev 'C library headers and static library: the helper is a static program' \
    compiles 'int main(void) { return 0; }' -static-pie -fPIE
  need pkg-config 'pkg-config: finds the Lua headers' have pkg-config
  need "$(lua_package headers "$LUA_NAME")" "Lua $LUA_NAME headers: the core is a Lua module" \
    lua_header "$LUA_NAME"
  need "$(lua_package interpreter "$LUA_NAME")" "the Lua $LUA_NAME interpreter" have "$LUA_BIN"
  need libseccomp-dev 'libseccomp with headers: makes the system call filter while building' \
    compiles '#include <seccomp.h>
      int main(void) { return seccomp_init(SCMP_ACT_ALLOW) == 0; }' -lseccomp
  want musl-tools 'musl-gcc: a helper that starts in half the time (make HELPER_LIBC= does without)' \
    have musl-gcc
  want libc-ares-dev 'c-ares with headers: the filtering proxy resolves names with it' has_cares
  want node-llhttp 'sources of llhttp (LLHTTP_DIR=): the filtering proxy reads HTTP with it' has_llhttp
  need bubblewrap 'bubblewrap (bwrap): makes the sandboxes' have bwrap
  need git 'git: the demo and the specs sandbox real repositories' have git
}

# Ordinary users have no sbin on PATH.
have_server() { have "$1" || [ -x "/usr/sbin/$1" ]; }

runs_busted() { have "$LUA_BIN" && "$LUA_BIN" -e 'require "busted.runner"' >/dev/null 2>&1; }

loads() { have "$LUA_BIN" && "$LUA_BIN" -e "require '$1'" >/dev/null 2>&1; }

have_undici() { NODE_PATH=/usr/share/nodejs node -e 'require("undici").ProxyAgent' >/dev/null 2>&1; }

need_test() {
  need lua-busted "busted for Lua $LUA_NAME: runs the specs" runs_busted
  need ripgrep 'ripgrep (rg): deny globs are compared with it' have rg
  need lua-cqueues 'cqueues: an event loop that runs wait in' loads cqueues
  need lua-luv 'luv: another one, and the one of Neovim' loads luv
  need python3 'python3: a real command that uses sockets and threads' have python3
  need tinyproxy 'tinyproxy: a real proxy, to be relayed to' have tinyproxy
  need microsocks 'microsocks: another one, of SOCKS5' have microsocks
  need nginx-light 'nginx: a real server, with and without TLS' have_server nginx
  need openssl 'openssl: makes the certificates of that server' have openssl
  need curl 'curl: a real client of proxies' have curl
  need wget 'wget: another one' have wget
  need nodejs 'node: another one, of its own kind' have node
  need node-undici 'undici: makes the fetch of node before 24 take a proxy' have_undici
  need npm 'npm: installs from a registry through proxies' have npm
  need socat 'socat: the speed of relays is compared with it' have socat
  need luarocks 'luarocks: the rock is installed for real' have luarocks
  need lua5.1 'the Lua 5.1 interpreter: a second Lua that the rock is built for' have lua5.1
  need liblua5.1-0-dev 'Lua 5.1 headers: a second Lua that the rock is built for' lua_header_51
}
lua_header_51() (LUA_INCDIR='' && lua_header 5.1)

need_lint() {
  need clang-format 'clang-format: the layout of C' have clang-format
  need clang-tidy 'clang-tidy: static analysis of C' have clang-tidy
  need cppcheck 'cppcheck: static analysis of C' have cppcheck
  need lua-check 'luacheck: static analysis of Lua' have luacheck
  need shellcheck 'shellcheck: static analysis of the shell scripts' have shellcheck
  need lua5.1 'luac5.1: the grammar that all of the Lua code keeps to' have luac5.1
}

survey() {
  missing='' reasons='' wanted=''
  for group in $groups; do "need_$group"; done
}

by_hand() {
  printf 'execsandbox set-up: %s\nInstall by hand what gives you:\n%s' "$1" "$reasons" >&2
  printf 'The names are those of Debian and Ubuntu, where this does it all:\n  apt-get install%s\n' \
    "$missing" >&2
  exit 1
}

groups=$*
cd "$top" || exit
survey
[ -n "$missing" ] || exit 0

have apt-get || by_hand 'some things are missing and there is no apt-get here.'
sudo=
if [ "$(id -u)" -ne 0 ]; then
  have sudo || by_hand 'some things are missing, and installing them takes root or sudo.'
  # Without a terminal a password cannot be asked for.
  if [ ! -t 0 ] && ! sudo -n true 2>/dev/null; then
    [ "$missing" != "$wanted" ] || exit 0
    by_hand 'some things are missing, and sudo would ask for a password here.'
  fi
  sudo='sudo '
fi

printf 'execsandbox set-up: missing here, and needed:\n%s' "$reasons"
printf 'Installing with: %sapt-get install%s\n' "$sudo" "$missing"
# What is only wanted, and not in this system's archive, must not keep the rest away.
known() {
  for package in $missing; do
    case " $wanted " in *" $package "*) apt-cache show "$package" >/dev/null 2>&1 || continue ;; esac
    printf ' %s' "$package"
  done
}
as_root() { if [ -n "$sudo" ]; then sudo "$@"; else "$@"; fi; }
# shellcheck disable=SC2046 # a list
{
  as_root apt-get update -q &&
    as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends $(known)
} || by_hand 'apt-get could not install everything.'
survey
[ "$missing" = "$wanted" ] || by_hand 'everything was installed, yet some things still do not work.'
