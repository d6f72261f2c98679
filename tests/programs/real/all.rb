# Blocks that only C code's registers and stack hold, with a collection at each allocation; fibers and threads,
# whose stacks are looked through too.
require "json"

text = JSON.generate((0...20).map { |i| { "name" => "item #{i}", "values" => [i, i * 1.5, nil, true] } })
GC.stress = true
parsed = (0...2).map { JSON.parse(text) }
GC.stress = false
puts parsed.uniq.length, parsed[1][19]

fibers = (0...20).map do |i|
  Fiber.new do
    %w[c a b].sort_by { |it| Fiber.yield(it * 2); it + i.to_s }.join
  end
end
GC.stress = true
4.times { fibers.each { |fiber| fiber.resume if fiber.alive? } }
GC.stress = false
threads = (0...4).map { |i| Thread.new { (0...2000).map { |j| "#{i} #{j}".gsub(/\d/) { |d| d.succ } }.sort.last } }
puts threads.map(&:value)
GC.compact if GC.respond_to?(:compact)
catch(:done) { [3, 1, 2].each { |it| throw :done if it == 1 } }
puts "sum #{(1..50).reduce { |a, b| a + b.to_s.to_i }}"
