# Threads that wait for time and for each other's end.
# cause: none
import threading
import time

threads = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
