-- busted's plain output, and beside it a file for spec/run (SPEC_REPORT): the name of each test as
-- it starts, then the counts. Without counts the process died in the test named last.
return function(options)
  local busted = require "busted"
  local handler = require "busted.outputHandlers.plainTerminal"(options)
  local report = assert(io.open(assert(os.getenv "SPEC_REPORT"), "w"))
  report:setvbuf "line"

  busted.subscribe({ "test", "start" }, function(element)
    report:write("test ", (handler.getFullName(element):gsub("%s+", " ")), "\n")
    return nil, true
  end)
  busted.subscribe({ "exit" }, function()
    report:write(string.format("counts %d %d %d\n", handler.successesCount,
      handler.failuresCount + handler.errorsCount, handler.pendingsCount))
    return nil, true
  end)
  return handler
end
