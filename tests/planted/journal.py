# Each record is written for good.
# cause: syncing
# object: orders.wal
# size: told
import os
import time

log = os.open("orders.wal", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
synced = 0
for _ in range(40000):
    os.write(log, b"order" * 100)
    start = time.monotonic_ns()
    os.fsync(log)
    synced += time.monotonic_ns() - start
    if synced > 300_000_000:
        break
with open("truth", "a") as truth:
    print("size_ns", synced, file=truth)
