# One of four processes ends long after the others, and its parent waits for all.
# cause: last-to-end
# group: forks of last_process.py
# says: process
import multiprocessing
import time

if __name__ == "__main__":
    processes = [multiprocessing.Process(target=time.sleep, args=(0.9 if number == 1 else 0.2,)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
