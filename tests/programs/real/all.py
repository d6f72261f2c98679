# An ordinary program: json, re, subprocess, threading, ctypes, sockets, files.
import ctypes
import hashlib
import json
import multiprocessing
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import zlib

data = {"numbers": list(range(1000)), "text": "äöü" * 100, "nested": [{"a": [None, True, 1.5]}] * 50}
assert json.loads(json.dumps(data)) == data
print(hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest())
print(len(re.findall(r"(\w+)@(\w+)\.com", "a@b.com c@d.com " * 500)))
print(zlib.crc32(zlib.compress(b"text" * 10000)))

print(subprocess.run(["echo", "child"], capture_output=True).stdout)
print(subprocess.run("exit 7", shell=True).returncode)
print(subprocess.check_output([sys.executable, "-c", "print('inner')"]))

total, lock = 0, threading.Lock()


def work(number):
    global total
    for _ in range(200):
        with lock:
            total += number


threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(total)

libc = ctypes.CDLL(None)
compare_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
numbers = (ctypes.c_int * 6)(5, 3, 1, 4, 2, 6)
libc.qsort(numbers, 6, ctypes.sizeof(ctypes.c_int), compare_type(lambda a, b: a[0] - b[0]))
print(list(numbers), libc.abs(-5))
libm = ctypes.CDLL("libm.so.6")
libm.pow.restype = ctypes.c_double
print(libm.pow(ctypes.c_double(2), ctypes.c_double(10)))

left, right = socket.socketpair()
left.sendall(b"through a socket")
print(right.recv(100))

with multiprocessing.Pool(2) as pool:
    print(sum(pool.map(abs, range(-50, 50))))

database = sqlite3.connect(":memory:")
database.execute("create table t (a integer, b text)")
database.executemany("insert into t values (?, ?)", ((n, str(n)) for n in range(1000)))
print(database.execute("select sum(a), max(b) from t").fetchall())

with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "file")
    with open(path, "w") as file:
        file.write("text\n" * 1000)
    print(os.stat(path).st_size)

signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.pause()
child = os.fork()
if child == 0:
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print("to standard error", file=sys.stderr)
sys.exit(23)
