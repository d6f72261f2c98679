# Threads that wait for a while, and then compute for a certain time of the processor, as their own clocks have it.
import hashlib
import sys
import threading
import time

THREADS, CPU_NS = 3, 200_000_000
begin = threading.Event()
lock, ended = threading.Lock(), threading.Semaphore(0)
times = []


def work():
    data = b"x" * 50_000
    begin.wait()
    start = time.thread_time_ns()
    while time.thread_time_ns() - start < CPU_NS:
        hashlib.sha256(data).digest()
    with lock:
        times.append((threading.get_native_id(), time.thread_time_ns() - start))
    ended.release()
    threading.Event().wait()


for _ in range(THREADS):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    time.sleep(0.6)
    begin.set()
    for _ in range(THREADS):
        ended.acquire()
    print(" ".join(f"{tid}:{ns}" for tid, ns in times), flush=True)
print(flush=True)
