-- Whole numbers as decimal strings, exact to 19 digits: Lua's own are doubles, off by one above 2^53. Computed in two
-- halves, high * 10^9 + low.
local HALF = 1000000000

local function is_whole(value)
  return type(value) == 'string' and #value <= 20 and string.find(value, '^%-?%d+$') ~= nil
end

local function halves(text)
  local sign = 1
  if string.sub(text, 1, 1) == '-' then sign, text = -1, string.sub(text, 2) end
  return sign * (tonumber(string.sub(text, 1, -10)) or 0), sign * tonumber(string.sub(text, -9))
end

-- What remains of `total` once the others are taken from it, as halves: low is within 0 .. HALF - 1, and the number is
-- negative if and only if high is.
local function remaining(total, ...)
  local high, low = halves(total)
  for _, text in ipairs({...}) do
    local other_high, other_low = halves(text)
    high, low = high - other_high, low - other_low
  end
  local carry = math.floor(low / HALF)
  return high + carry, low - carry * HALF
end

-- As `remaining`, as a string; '0' if nothing is.
local function left_of(total, ...)
  local high, low = remaining(total, ...)
  if high < 0 then return '0' end
  if high == 0 then return string.format('%.0f', low) end
  return string.format('%.0f%09.0f', high, low)
end

local function is_less(text, than)
  return (remaining(text, than)) < 0
end
