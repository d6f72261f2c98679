# A pool of processes; one of four chunks has nearly all the work.
# cause: uneven-work
# group: forks of uneven_processes.py
# says: the 3 others wait for more to do
# says: Pool._handle_results waits for them
import multiprocessing
import time


def score(item):
    time.sleep(0.05 if item < 12 else 0.35)
    return item


if __name__ == "__main__":
    with multiprocessing.Pool(4) as pool:
        print(sum(pool.map(score, range(16), chunksize=4)))
