# A pool of two threads computes checksums, without the lock of the interpreter: it has all processors of a machine with two, and who
# waits for it waits for work that is divided already.
# cause: none
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

BLOCK = b"x" * (1 << 20)


class Checksum:
    def __call__(self, number):
        return hashlib.sha256(BLOCK + bytes([number % 256])).hexdigest()


with ThreadPoolExecutor(os.cpu_count()) as pool:
    print(len(set(pool.map(Checksum(), range(700)))))
