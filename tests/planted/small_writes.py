# A file is written a few bytes at a time, without a buffer.
# cause: small-transfers
# object: events.log
import os

log = os.open("events.log", os.O_CREAT | os.O_WRONLY, 0o600)
for number in range(250000):
    os.write(log, b"event\n")
os.close(log)
