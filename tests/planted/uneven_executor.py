# An executor of processes; one of its tasks takes much longer than the others.
# cause: uneven-work
# group: forks of uneven_executor.py
# says: the 3 others wait for more to do
import concurrent.futures
import time


def load(item):
    time.sleep(1.2 if item == 1 else 0.25)
    return item


if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(4) as pool:
        print(sum(pool.map(load, range(4))))
