# A thread for each message, which is handled in no time.
# cause: short-threads
# group: handle
# says: 2000 threads
import threading

seen = []


def handle(message):
    seen.append(message * 2)


for message in range(2000):
    thread = threading.Thread(target=handle, args=(message,))
    thread.start()
    thread.join()
