# Fibers in calls from C, exceptions out of them, and a conservative collector that scans all their stacks.
lib LibC
  fun qsort(base : Int32*, count : SizeT, size : SizeT, compare : (Int32*, Int32*) -> Int32)
end

class Left < Exception; end

def by_c(numbers : Array(Int32), compare)
  LibC.qsort(numbers.to_unsafe, numbers.size, 4, compare)
  numbers
end

channel = Channel(Int64).new
40.times do |i|
  spawn do
    numbers = (0...100).map { |j| (i + j) * 7919 % 1009 }
    sorted = by_c(numbers, ->(a : Int32*, b : Int32*) { Fiber.yield; GC.collect if a.value == b.value + 1; a.value.to_s.rjust(5) <=> b.value.to_s.rjust(5) })
    sum = 0_i64
    sorted.each_with_index { |n, at| sum += n.to_i64 * at }
    channel.send(sum)
  end
end
puts (0...40).sum { channel.receive }

left = 0
300.times do |i|
  begin
    "a-b".gsub(/-/) { raise Left.new("left"); "" }
  rescue Left
    left += 1
  ensure
    GC.collect if i % 100 == 0
  end
end
puts left

strings = (0...20000).map { |i| (i * i).to_s.gsub(/1+/) { |m| "<#{m}>" } }
puts strings.sum(&.size)
generator = Channel(Int32).new(2)
spawn { 1000.times { |i| generator.send(i) }; generator.close }
sum = 0
while n = generator.receive?
  sum += n
end
puts sum
exit 3
