# Threads that work in rounds, as rounds.cpp does.
import sys
import threading
import zlib

THREADS, PIECES = 4, 200
start, end = threading.Barrier(THREADS + 1), threading.Barrier(THREADS + 1)
sums = [0] * THREADS
over = False


def work(number):
    while True:
        start.wait()
        if over:
            return
        for i in range(PIECES):
            sums[number] += zlib.crc32(bytes([number, i % 256]) * 300)
        end.wait()


threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
for thread in threads:
    thread.start()
print("ready", flush=True)
number = 0
for line in sys.stdin:
    number += 1
    start.wait()
    end.wait()
    print(number, sum(sums), flush=True)
over = True
start.wait()
for thread in threads:
    thread.join()
