# A file of settings is opened and read again for each item.
# cause: looked-up-again
# object: settings.json
# says: opens
import json

with open("settings.json", "w") as file:
    json.dump({"limit": 7, "about": "x" * 3000}, file)


def limit():
    with open("settings.json", "rb", buffering=0) as file:
        return json.loads(file.read())["limit"]


total = 0
for _ in range(40000):
    total += limit()
