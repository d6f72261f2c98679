# A queue.Queue whose producer is slow: it compresses, without the interpreter's lock.
# cause: limiting-stage
# waker: produce, in
# group: produce
import hashlib
import queue
import threading
import zlib

items = queue.Queue()
block = bytes(range(256)) * 2000


def produce():
    for _ in range(60):
        items.put(zlib.compress(block, 9))
    items.put(None)


def consume():
    while items.get() is not None:
        hashlib.sha256(block).digest()


threads = [threading.Thread(target=consume), threading.Thread(target=produce)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
