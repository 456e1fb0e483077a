-- The arguments are RATE [MODE …]. RATE is the number of requests per second; with 0 each connection sends the next
-- request after a response. Without a mode, wrk repeats the same GET request. The modes send
--
--   tokens METHOD PATHS TOKENS   for each path, a request with each token
--   bodies BODIES                POST requests, one for each JSON body
--
-- where PATHS, TOKENS and BODIES are files with an entry a line. Prints one line of JSON at the end.
local ffi = require("ffi")
ffi.cdef("struct timeval { long sec, usec; }; int gettimeofday(struct timeval *, void *);")

-- Plans requests at equal distances. A late response delays no other request while a connection is free.
local function keep(rate)
  local time, start, planned = ffi.new("struct timeval"), nil, 0
  delay = function()
    ffi.C.gettimeofday(time, nil)
    local now = tonumber(time.sec) * 1000 + tonumber(time.usec) / 1000
    start, planned = start or now, planned + 1000 / rate
    return math.max(0, start + planned - now)
  end
end

local function lines(path)
  local entries = {}
  for line in io.lines(path) do entries[#entries + 1] = line end
  return entries
end

local modes = {}

function modes.tokens(method, paths, tokens)
  paths, tokens = lines(paths), lines(tokens)
  local body = method == "POST" and "" or nil
  local template = wrk.format(method, "/PATH", { Authorization = "Bearer TOKEN" }, body)
  local head, middle, tail = template:match("^(.-)/PATH(.-)TOKEN(.*)$")
  local i = 0
  request = function()
    local path, token = paths[math.floor(i / #tokens) % #paths + 1], tokens[i % #tokens + 1]
    i = i + 1
    return head .. path .. middle .. token .. tail
  end
end

function modes.bodies(bodies)
  bodies = lines(bodies)
  local i = 0
  request = function()
    i = i % #bodies + 1
    return wrk.format("POST", nil, { ["Content-Type"] = "application/json" }, bodies[i])
  end
end

function init(args)
  if args[1] ~= "0" then keep(tonumber(args[1])) end
  if args[2] then modes[args[2]](unpack(args, 3)) end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "seconds": %f, "bytes": %d, "p50": %f, "p99": %f, "refused": %d, "broken": %d, "late": %d}\n',
    summary.requests, summary.duration / 1e6, summary.bytes, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.status, errors.connect + errors.read + errors.write, errors.timeout
  ))
end
