# A pool of threads that sleep and answer.
# cause: none
import concurrent.futures
import time


def task(number):
    time.sleep(0.1)
    return number


with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
    print(sum(pool.map(task, range(8))))
