# Threads one after the other, each of which has pages of its own in a recording.
import threading
import zlib

done = []


def work():
    done.append(zlib.crc32(b"x" * 100))


for _ in range(200):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
print(len(done), "threads")
