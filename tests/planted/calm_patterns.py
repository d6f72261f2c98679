# Python keeps the patterns that it has compiled.
# cause: none
import re

found = 0
for number in range(300000):
    found += bool(re.match(r"^(\d+) (GET|POST) /([a-z]+)$", "12 GET /index"))
assert found
