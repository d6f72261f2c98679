# A text is written and read by lines, with a buffer.
# cause: none
with open("lines.txt", "w") as out:
    for number in range(60000):
        out.write(f"line {number}\n")
total = 0
with open("lines.txt") as lines:
    for line in lines:
        total += len(line.split()[1])
for step in range(1_500_000):
    total = (total * 31 + step) & 0xFFFF
print(total)
