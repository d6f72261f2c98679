# Two threads that compute: one interpreter, which one thread has at a time.
# cause: interpreter-lock
# group: spin
# also: too-many-threads
import threading


def spin():
    value = 0
    for step in range(2_500_000):
        value = (value * 31 + step) & 0xFFFF


threads = [threading.Thread(target=spin) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
