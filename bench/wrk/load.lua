-- What wrk sends, by its first argument, and what it tells afterwards: one line of JSON.
--
--   plain                                    the same request every time
--   tokens TOKENS                            the same path, in the name of one user after another
--   paths PATHS                              one path after another
--   bodies BODIES                            POST, one JSON body after another
--   pairs BEFORE AFTER ORDER TOKENS IDS      POST, every user for every id: the path is BEFORE, an id, AFTER; by ORDER
--                                            first the users change ("users") or the ids ("ids")
--
-- TOKENS, PATHS, BODIES and IDS are files of one entry a line.

local function lines(path)
  local entries = {}
  for line in io.lines(path) do entries[#entries + 1] = line end
  return entries
end

-- Requests made beforehand, sent in turn.
local function rotate(requests)
  local count, i = #requests, 0
  request = function()
    i = i % count + 1
    return requests[i]
  end
end

local modes = {}

function modes.plain() end

function modes.tokens(tokens)
  local requests = {}
  for i, token in ipairs(lines(tokens)) do
    requests[i] = wrk.format(nil, nil, { Authorization = "Bearer " .. token })
  end
  rotate(requests)
end

function modes.paths(paths)
  local requests = {}
  for i, path in ipairs(lines(paths)) do requests[i] = wrk.format(nil, path) end
  rotate(requests)
end

function modes.bodies(bodies)
  local requests = {}
  for i, body in ipairs(lines(bodies)) do
    requests[i] = wrk.format("POST", nil, { ["Content-Type"] = "application/json" }, body)
  end
  rotate(requests)
  -- Reading answers costs the generator time, which is nothing beside a password's hash.
  statuses = {}
  response = function(status)
    statuses[status] = (statuses[status] or 0) + 1
  end
end

function modes.pairs(before, after, order, tokens, ids)
  tokens, ids = lines(tokens), lines(ids)
  local template = wrk.format("POST", "/PATH", { Authorization = "Bearer TOKEN" }, "")
  local head, middle, tail = template:match("^(.-)/PATH(.-)TOKEN(.*)$")
  local inner = order == "users" and #tokens or #ids
  local i = 0
  request = function()
    local a, b = i % inner, math.floor(i / inner)
    i = i + 1
    local user, id = a, b
    if order == "ids" then user, id = b, a end
    return head .. before .. ids[id % #ids + 1] .. after .. middle .. tokens[user % #tokens + 1] .. tail
  end
end

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function init(args)
  modes[args[1]](unpack(args, 2))
end

function done(summary, latency)
  local counted = {}
  for _, thread in ipairs(threads) do
    for status, count in pairs(thread:get("statuses") or {}) do
      counted[#counted + 1] = string.format('"%d": %d', status, count)
    end
  end
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "microseconds": %d, "bytes": %d, "p50": %d, "p99": %d, "max": %d, "refused": %d, '
      .. '"broken": %d, "timeouts": %d, "statuses": {%s}}\n',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99), latency.max,
    errors.status, errors.connect + errors.read + errors.write, errors.timeout, table.concat(counted, ", ")
  ))
end
