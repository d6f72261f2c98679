# A thread looks again and again whether there is something to do.
# cause: polling
# group: main of polling.py
# waker: nobody: time was over
import time

for _ in range(250):
    time.sleep(0.001)
