# A queue.Queue of limited size whose consumer is slow: it compresses, without the interpreter's lock. The producer hardly works.
# cause: limiting-stage
# waker: archive, in
# group: archive
# says: mostly runs deflate
import queue
import threading
import zlib

items = queue.Queue(4)
block = bytes(range(256)) * 2000


def produce():
    for number in range(80):
        items.put(str(number).encode() + block)
    items.put(None)


def archive():
    while (item := items.get()) is not None:
        zlib.compress(item, 9)


threads = [threading.Thread(target=archive), threading.Thread(target=produce)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
