# Coroutines whose slices of the stack are copied away and back, in the middle of calls between C libraries.
import ctypes
import greenlet
import threading
import zlib

libc = ctypes.CDLL(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
hub = greenlet.getcurrent()


def pause():
    greenlet.getcurrent().parent.switch()


def sort(seed):
    "Gives way in each comparison of a library's sort."

    def compare(a, b):
        pause()
        return a[0] - b[0]

    values = (ctypes.c_int * 8)(*[(seed * 7 + i * 5) % 11 for i in range(8)])
    libc.qsort(values, 8, 4, COMPARE(compare))
    return list(values)


def deep(depth):
    if depth == 0:
        pause()
        return zlib.crc32(b"bottom")
    return sorted([depth, -depth], key=lambda it: deep(depth - 1) * it)[0]


def fail(seed):
    try:
        pause()
        sorted([1, 2], key=lambda it: pause() or it // 0)
    except ZeroDivisionError as error:
        pause()
        return f"{seed}: {error}"


def run():
    "All in turns, until each is done."
    jobs = [(sort, i) for i in range(40)] + [(deep, i % 6) for i in range(20)] + [(fail, i) for i in range(20)]
    running = {n: (greenlet.greenlet(job), value) for n, (job, value) in enumerate(jobs)}
    results = {}
    while running:
        for n, (it, value) in list(running.items()):
            got = it.switch(value) if not it else it.switch()
            if it.dead:
                results[n] = got
                del running[n]
    left = greenlet.greenlet(deep)
    left.switch(1)
    return [results[n] for n in sorted(results)]


first = run()
print(first)
threads = []
outcomes = []
for _ in range(3):
    threads.append(threading.Thread(target=lambda: outcomes.append(run() == first)))
    threads[-1].start()
for thread in threads:
    thread.join()
print(outcomes)
