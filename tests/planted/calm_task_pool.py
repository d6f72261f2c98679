# A pool of processes that gets a short task now and then: one waits for the next, and the others for their turn to.
# cause: none
import multiprocessing
import time


def task(number):
    time.sleep(0.003)
    return number


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(4) as pool:
        results = []
        for i in range(80):
            results.append(pool.apply_async(task, (i,)))
            time.sleep(0.02)
        print(sum(result.get() for result in results))
