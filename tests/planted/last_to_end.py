# One of four threads ends long after the others.
# cause: last-to-end
import threading
import time

threads = [threading.Thread(target=time.sleep, args=(0.35 if number == 1 else 0.05,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
