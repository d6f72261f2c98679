counts = Hash.new(0)
text = (0...60_000).map { |i| "item #{(i * 7919) % 60_013} of #{i % 13}" }
20.times do
  text.each { |line| line.scan(/\d+/) { |n| counts[n] += 1 } }
  text.sort_by { |line| line.reverse }.each_slice(7) { |part| counts[part.join(" ").hash % 97] += 1 }
end
puts counts.size
