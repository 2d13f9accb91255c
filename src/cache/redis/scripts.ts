import { createHash } from 'node:crypto'

/** A script with the name that Redis gives it. */
export type LuaScript = Readonly<{ lua: string; sha: string }>

function script(lua: string): LuaScript {
  return { lua, sha: createHash('sha1').update(lua).digest('hex') }
}

/*
 * Each script runs as a whole inside Redis, so a reader sees all of a result or nothing of it.
 *
 * Layout, under the prefix and the version `v1`: `latest:<camera>` the newest result as JSON; `index:<camera>` and `index` the order keys of
 * what is kept, all with score 0 so that they sort as text; `results:<camera>` a hash from order key to JSON. In a cluster the camera stands
 * in braces, so that its keys lie on one server; `index` lies on another one, and has a script of its own.
 *
 * What somebody else keeps under one of these names has another type: it is neither read nor written, and told.
 */

const prelude = `
local foreign = {}
local function ours(key, kind)
  local is = redis.call('TYPE', key).ok
  if is == 'none' or is == kind then return true end
  foreign[#foreign + 1] = key
  return false
end
`

/**
 * KEYS: latest, index of the camera, results of the camera, and index of all where it lies on the same server.
 * ARGV: JSON, order key, life of the latest (ms), most results of a camera, first key that has not expired, life of the rest (ms).
 *
 * Returns the order keys that went, then the keys that are not ours.
 */
export const putScript = script(`${prelude}
local gone = {}
if ours(KEYS[1], 'string') then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3]) end
local all = KEYS[4] and ours(KEYS[4], 'zset')
local indexed = ours(KEYS[2], 'zset')
if ours(KEYS[3], 'hash') and indexed then
  redis.call('HSET', KEYS[3], ARGV[2], ARGV[1])
  redis.call('ZADD', KEYS[2], 0, ARGV[2])
  if all then redis.call('ZADD', KEYS[4], 0, ARGV[2]) end
  local function drop(keys)
    for _, key in ipairs(keys) do
      gone[#gone + 1] = key
      redis.call('HDEL', KEYS[3], key)
      redis.call('ZREM', KEYS[2], key)
      if all then redis.call('ZREM', KEYS[4], key) end
    end
  end
  local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[4])
  if over > 0 then drop(redis.call('ZRANGE', KEYS[2], 0, math.min(over, 100) - 1)) end
  drop(redis.call('ZRANGEBYLEX', KEYS[2], '-', '(' .. ARGV[5], 'LIMIT', 0, 100))
  for i = 2, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[6]) end
  if all then
    redis.call('ZREMRANGEBYLEX', KEYS[4], '-', '(' .. ARGV[5])
    redis.call('PEXPIRE', KEYS[4], ARGV[6])
  end
end
return { gone, foreign }
`)

/**
 * KEYS: index of all. ARGV: first key that has not expired, life (ms), order key to add or '', then order keys to take away.
 *
 * Returns the keys that are not ours.
 */
export const indexScript = script(`${prelude}
if ours(KEYS[1], 'zset') then
  if ARGV[3] ~= '' then redis.call('ZADD', KEYS[1], 0, ARGV[3]) end
  for i = 4, #ARGV do redis.call('ZREM', KEYS[1], ARGV[i]) end
  redis.call('ZREMRANGEBYLEX', KEYS[1], '-', '(' .. ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return foreign
`)

/**
 * KEYS: index to read. ARGV: first key, key after the last, most keys to look at, most results, text a result must contain or '', then what
 * the names of a camera's results begin and end with.
 *
 * Returns the keys that are not ours, the number of keys looked at, the last of them, then order key and JSON of each result, newest first.
 */
export const pageScript = script(`${prelude}
local found = {}
local looked = 0
local last = ''
if ours(KEYS[1], 'zset') then
  local keys = redis.call('ZREVRANGEBYLEX', KEYS[1], '(' .. ARGV[2], '[' .. ARGV[1], 'LIMIT', 0, ARGV[3])
  local most = tonumber(ARGV[4])
  local readable = {}
  for _, key in ipairs(keys) do
    looked = looked + 1
    last = key
    local camera = string.match(key, '^%d+:([^:]+):')
    if not camera then
      foreign[#foreign + 1] = KEYS[1]
    else
      local name = ARGV[6] .. camera .. ARGV[7]
      if readable[name] == nil then readable[name] = ours(name, 'hash') end
      local json = readable[name] and redis.call('HGET', name, key)
      if json and (ARGV[5] == '' or string.find(json, ARGV[5], 1, true)) then
        found[#found + 1] = key
        found[#found + 1] = json
        if #found >= 2 * most then break end
      end
    end
  end
end
return { foreign, looked, last, unpack(found) }
`)

/** KEYS: index of all. ARGV: first key, key after the last, most keys to look at. Returns the keys that are not ours, then the order keys. */
export const keysScript = script(`${prelude}
if not ours(KEYS[1], 'zset') then return { foreign } end
local keys = redis.call('ZREVRANGEBYLEX', KEYS[1], '(' .. ARGV[2], '[' .. ARGV[1], 'LIMIT', 0, ARGV[3])
return { foreign, unpack(keys) }
`)

/** KEYS: results of a camera. ARGV: order keys. Returns the keys that are not ours, then JSON or '' of each order key. */
export const readScript = script(`${prelude}
local found = {}
local readable = ours(KEYS[1], 'hash')
for i, key in ipairs(ARGV) do found[i] = readable and redis.call('HGET', KEYS[1], key) or '' end
return { foreign, unpack(found) }
`)

/** KEYS: latest. Returns the keys that are not ours, then JSON where there is some. */
export const latestScript = script(`${prelude}
local json = ours(KEYS[1], 'string') and redis.call('GET', KEYS[1])
return { foreign, json or nil }
`)

/** KEYS: latest, index of the camera, results of the camera, and index of all where it lies on the same server. Returns as {@link putScript}. */
export const forgetScript = script(`${prelude}
local gone = {}
if ours(KEYS[2], 'zset') then
  gone = redis.call('ZRANGE', KEYS[2], 0, -1)
  if KEYS[4] and ours(KEYS[4], 'zset') then
    for _, key in ipairs(gone) do redis.call('ZREM', KEYS[4], key) end
  end
  redis.call('DEL', KEYS[2])
end
if ours(KEYS[1], 'string') then redis.call('DEL', KEYS[1]) end
if ours(KEYS[3], 'hash') then redis.call('DEL', KEYS[3]) end
return { gone, foreign }
`)

export const allScripts: readonly LuaScript[] = [
  putScript,
  indexScript,
  pageScript,
  keysScript,
  readScript,
  latestScript,
  forgetScript,
]
