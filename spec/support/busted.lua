-- busted under the interpreter that runs this file. The `busted` command names an interpreter of
-- its own, which need not be the one under test.
require "busted.runner" { standalone = false }
