# Fibers that are switched inside of C code that calls back, left there by exceptions, and resumed by others.
require "zlib"
$\ = "\n"

inside = (0...60).map do |i|
  Fiber.new do
    sum = 0
    [3, 1, 2].sort_by { |x| Fiber.yield; sum += x; -x }
    { a: 1 }.each { |_, v| Fiber.yield(sum += v) }
    "a-b-c".gsub(/-/) { Fiber.yield; sum += 1; "" }
    Zlib.inflate(Zlib.deflate(sum.to_s * i)).sum
  end
end
sums = []
until inside.empty?
  inside.rotate!(7)
  fiber = inside.shift
  value = fiber.resume
  fiber.alive? ? inside << fiber : sums << value
end
print sums.sort.sum

# Left by exceptions, throws and breaks.
left = (0...300).sum do |i|
  fiber = Fiber.new { [1, 2].each { |x| Fiber.yield x; raise ArgumentError if i.odd?; throw :left, 5 } }
  fiber.resume
  begin
    catch(:left) { fiber.resume }
  rescue ArgumentError, UncaughtThrowError
    1
  end
end
print left
print (0...100).sum { |i| [4, 5].each_with_index { |x, j| break x if j == i % 2 } }

# Never finished: the collector ends them.
2000.times { |i| Fiber.new { [1].each { Fiber.yield i } }.resume }
GC.start

external = [3, 4, 5].each
print external.next + external.next
chain = Enumerator.produce([0, 1]) { |a, b| [b, a + b] }.lazy.map(&:first).select(&:even?).first(10)
print chain.join(",")

# Each thread has fibers of its own; one is begun here and goes on there, where Ruby lets it.
print (0...4).map { |t|
  Thread.new do
    fibers = (0...50).map { |i| Fiber.new { 10.times { |j| Fiber.yield "#{t}#{i}#{j}".gsub(/\d/, &:succ).size }; 0 } }
    (0...10).sum { fibers.sum(&:resume) }
  end
}.map(&:value).join(" ")
catch(:done) { callcc { |k| k.call } } if respond_to?(:callcc)
require "continuation" rescue nil
times = 0
again = callcc { |k| k }
times += 1
again.call(again) if times < 50
print times
exit 3
