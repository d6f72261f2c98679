# A convoy on a threading.Lock.
# cause: serialising-lock
# group: worker
# waker: worker, in
# size: told
import threading
import time

lock = threading.Lock()
waited = [0] * 4


def worker(number):
    for _ in range(10):
        start = time.monotonic_ns()
        with lock:
            waited[number] += time.monotonic_ns() - start
            time.sleep(0.008)


threads = [threading.Thread(target=worker, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with open("truth", "a") as truth:
    print("size_ns", max(waited), file=truth)
