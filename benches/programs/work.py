import json
import re

rows = [{"id": i, "name": f"item {i * 7919 % 50021}", "tags": ["a", "b", str(i % 7)]} for i in range(50000)]
for _ in range(3):
    text = json.dumps(rows)
    rows = json.loads(text)
rows.sort(key=lambda row: row["name"])
words = re.findall(r"item (\d+)", text)
text = re.sub(r'"name": "([^"]*)"', lambda m: m.group(1).upper(), text)
print(len(words), len(text), rows[0]["id"], rows[-1]["id"])
