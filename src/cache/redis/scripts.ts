/**
 * Each script runs as a whole inside Redis, so a reader sees all of a result or nothing of it.
 *
 * Layout, under the prefix: `latest:<camera>` the newest result as JSON; `index:<camera>` and `index` the order keys of what is kept, all
 * with score 0 so that they sort as text; `results:<camera>` a hash from order key to JSON.
 */

/**
 * KEYS: latest, index of the camera, results of the camera, index of all.
 * ARGV: JSON, order key, life of the latest (ms), most results of a camera, first key that has not expired, life of the rest (ms).
 */
export const putScript = `
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
redis.call('HSET', KEYS[3], ARGV[2], ARGV[1])
redis.call('ZADD', KEYS[2], 0, ARGV[2])
redis.call('ZADD', KEYS[4], 0, ARGV[2])
local function drop(gone)
  for _, key in ipairs(gone) do
    redis.call('HDEL', KEYS[3], key)
    redis.call('ZREM', KEYS[2], key)
    redis.call('ZREM', KEYS[4], key)
  end
end
local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[4])
if over > 0 then drop(redis.call('ZRANGE', KEYS[2], 0, math.min(over, 100) - 1)) end
drop(redis.call('ZRANGEBYLEX', KEYS[2], '-', '(' .. ARGV[5], 'LIMIT', 0, 100))
redis.call('ZREMRANGEBYLEX', KEYS[4], '-', '(' .. ARGV[5])
for i = 2, 4 do redis.call('PEXPIRE', KEYS[i], ARGV[6]) end
return 1
`

/**
 * KEYS: index to read. ARGV: first key, key after the last, most keys to look at, most results, text a result must contain or '', prefix of
 * the results of a camera.
 *
 * Returns the number of keys looked at, the last of them, then order key and JSON of each result, newest first.
 */
export const pageScript = `
local keys = redis.call('ZREVRANGEBYLEX', KEYS[1], '(' .. ARGV[2], '[' .. ARGV[1], 'LIMIT', 0, ARGV[3])
local most = tonumber(ARGV[4])
local found = {}
local looked = 0
local last = ''
for _, key in ipairs(keys) do
  looked = looked + 1
  last = key
  local camera = string.match(key, '^%d+:([^:]+):')
  local json = redis.call('HGET', ARGV[6] .. camera, key)
  if json and (ARGV[5] == '' or string.find(json, ARGV[5], 1, true)) then
    found[#found + 1] = key
    found[#found + 1] = json
    if #found >= 2 * most then break end
  end
end
return { looked, last, unpack(found) }
`

/** KEYS: latest, index of the camera, results of the camera, index of all. */
export const forgetScript = `
for _, key in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do redis.call('ZREM', KEYS[4], key) end
return redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
`
