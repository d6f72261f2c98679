"""What the picture of the page is of: threads that compress, one with more work, and that store what they have under a lock."""
import hashlib
import json
import threading
import time
import zlib

LOCK = threading.Lock()
SIZES = []


def compress(blocks):
    data = b"the quick brown fox jumps over the lazy dog " * 40_000
    for _ in range(blocks):
        packed = zlib.compress(data, 6)
        with LOCK:
            SIZES.append(len(packed))
            time.sleep(0.004)  # as if it were written somewhere


def parse(documents):
    for _ in range(documents):
        text = json.dumps({"rows": list(range(2_000)), "sum": hashlib.sha256(b"x" * 100_000).hexdigest()})
        json.loads(text)


def main():
    work = [(compress, 40), (compress, 40), (compress, 40), (compress, 120), (parse, 60), (parse, 60)]
    threads = [threading.Thread(target=function, args=(amount,)) for function, amount in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(SIZES), "bytes")


main()
