-- Callbacks from C that collect, errors and coroutines; calls from compiled traces go straight to C.
local ffi = require "ffi"
ffi.cdef [[
void qsort(void *base, size_t count, size_t size, int (*compare)(const int *, const int *));
size_t strlen(const char *text);
int snprintf(char *to, size_t size, const char *format, ...);
void *malloc(size_t size);
void free(void *block);
unsigned long crc32(unsigned long crc, const char *from, unsigned size);
]]
local function sorted(numbers, compare)
  local array, callback = ffi.new("int[?]", #numbers, numbers), ffi.cast("int (*)(const int *, const int *)", compare)
  ffi.C.qsort(array, #numbers, 4, callback)
  callback:free()
  local out = {}
  for i = 1, #numbers do out[i] = array[i - 1] end
  return out
end
local numbers, calls = {}, 0
for i = 1, 500 do numbers[i] = i * 7919 % 1009 end
local by_c = sorted(numbers, function(a, b)
  calls = calls + 1
  if calls % 100 == 0 then collectgarbage() end
  return a[0] - b[0]
end)
table.sort(numbers)
print(table.concat(by_c, ",") == table.concat(numbers, ","), calls > 500)

-- An error inside a callback, caught there; a coroutine that runs in one.
local caught = 0
local resumed = sorted(numbers, function(a, b)
  if not pcall(error, "left") then caught = caught + 1 end
  local co = coroutine.wrap(function(x) for _ = 1, 3 do x = coroutine.yield(x + 1) end return x end)
  return co(b[0]) + co(1) - 3 - a[0]
end)
print(caught > 500, resumed[1], resumed[500])

local sum = 0
for i = 1, 200000 do sum = sum + tonumber(ffi.C.strlen("chase")) end
print(sum)
local blocks = {}
for i = 1, 20000 do blocks[i % 64] = ffi.gc(ffi.C.malloc(i % 100 + 1), ffi.C.free) end
collectgarbage()
local left = 0
for i = 1, 2000 do
  local ok = pcall(function() string.gsub("abc", ".", function(c) if c == "b" then error "left" end end) end)
  if not ok then left = left + 1 end
end
print(left)
local generators = {}
for i = 1, 100 do
  generators[i] = coroutine.create(function()
    for j = 1, 20 do string.gsub("x" .. j, "%d+", tostring) coroutine.yield(j * i) end
    table.sort({ 3, 1, 2 }, function(a, b) return a < b end)
  end)
end
local total = 0
for _ = 1, 21 do
  for _, co in ipairs(generators) do local _, value = coroutine.resume(co) total = total + (value or 0) end
end
print(total, string.dump(function() end):sub(2, 3))
os.exit(3)
