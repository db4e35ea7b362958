"""Scripts that read a page of sorted sets: from a place on by score and member, not by rank, in one atomic step.

Between a rank that is looked up and a range that is read from it, a comment may be published, and every rank changes.
"""

from __future__ import annotations

_FOLLOWING = """
-- Members are of one length, so that Redis orders those of equal score as numbers. These are halved to find the place:
-- they may be most of a list.
local function following(key, score, member, most)
  local low = 0
  if score then
    low = redis.call('ZCOUNT', key, '(' .. score, '+inf')
    local high = low + redis.call('ZCOUNT', key, score, score)
    while low < high do
      local middle = math.floor((low + high) / 2)
      if redis.call('ZREVRANGE', key, middle, middle)[1] >= member then low = middle + 1 else high = middle end
    end
  end
  return redis.call('ZREVRANGE', key, low, low + most - 1, 'WITHSCORES')
end
"""

PAGE = (
    _FOLLOWING
    + """
-- KEYS: a list. ARGV: how many, then score and member of the place that they follow; neither for the first page.
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
return following(KEYS[1], ARGV[2], ARGV[3], tonumber(ARGV[1]))
"""
)
"""Returns members and scores in turns, highest score first; nil if there is no list."""

SEGMENTED_PAGE = (
    _FOLLOWING
    + """
-- KEYS: the current version of a list in segments, see `scoring.heat_lists`. ARGV: as of PAGE.
local current = redis.call('GET', KEYS[1])
if not current then return false end
local known, most, found = cjson.decode(current), tonumber(ARGV[1]), {}
local keys = {}
for segment = 1, known.segments do
  keys[segment] = KEYS[1] .. ':' .. known.version .. ':' .. (segment - 1)
  -- Redis evicted it for lack of memory: its comments would be skipped, or the list would seem to end before them.
  if known.count > 0 and redis.call('EXISTS', keys[segment]) == 0 then return false end
end
for _, key in ipairs(keys) do
  if #found < 2 * most then
    for _, part in ipairs(following(key, ARGV[2], ARGV[3], most - #found / 2)) do found[#found + 1] = part end
  end
end
return found
"""
)
"""Returns members and scores in turns, highest score first; nil if there is no list, or not all of it."""
