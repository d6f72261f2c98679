# Waits for ends of threads, and for events that threads set before they end, or at their end.
# cause: none
import threading
import time

waited = {"join": 0, "event": 0}


def works(done):
    time.sleep(0.05)
    done.set()
    time.sleep(0.05)


def ends(done):
    time.sleep(0.05)
    done.set()


def timed(what, wait):
    start = time.monotonic_ns()
    wait()
    waited[what] += time.monotonic_ns() - start


for target in [works, ends] * 3:
    done = threading.Event()
    thread = threading.Thread(target=target, args=(done,))
    thread.start()
    timed("event", done.wait)
    timed("join", thread.join)

with open("truth", "a") as truth:
    for what, ns in waited.items():
        print(what + "_ns", ns, file=truth)
