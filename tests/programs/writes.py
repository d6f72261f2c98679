# Threads that work in rounds, as rounds.cpp does: each of them writes so often.
import os
import sys
import threading

THREADS, WRITES = 4, 200
start, end = threading.Barrier(THREADS + 1), threading.Barrier(THREADS + 1)
nowhere = os.open("/dev/null", os.O_WRONLY)
over = False


def work():
    while True:
        start.wait()
        if over:
            return
        for _ in range(WRITES):
            os.write(nowhere, b"x")
        end.wait()


threads = [threading.Thread(target=work) for _ in range(THREADS)]
for thread in threads:
    thread.start()
print("ready", flush=True)
for line in sys.stdin:
    start.wait()
    end.wait()
    print("done", flush=True)
over = True
start.wait()
for thread in threads:
    thread.join()
