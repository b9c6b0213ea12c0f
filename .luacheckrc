std = "min" -- what Lua 5.1 to 5.4 and LuaJIT have in common
max_line_length = 110
include_files = { "lua/**/*.lua", "spec/**/*.lua", "rockspec/*.rockspec", ".busted", ".luacheckrc" }
exclude_files = { "build" }

files["spec"] = { std = "+busted", max_line_length = 132 } -- commands and their output
files["rockspec"] = { std = "rockspec" }
files[".busted"] = { std = "min" }
files[".luacheckrc"] = { std = "luacheckrc" }
