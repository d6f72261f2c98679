# A pool of processes that have equal shares.
# cause: none
import multiprocessing
import time


def score(item):
    time.sleep(0.05)
    return item


if __name__ == "__main__":
    with multiprocessing.Pool(4) as pool:
        print(sum(pool.map(score, range(40), chunksize=2)))
