# The owner of each file is looked up, though there are two of them only.
# cause: made-again
# says: getpwuid
# says: answers can be kept
import pwd

names = set()
for number in range(30000):
    names.add(pwd.getpwuid(0).pw_name)
