# A pool of processes settles four regions a day; one takes 150 ms, the others 30 ms. The days follow each other without a pause, so a
# different process has the long one each time.
# cause: uneven-work
# group: forks of
# says: One of the forks of
# says: in about
# says: rounds of work
# says: of it in clock_nanosleep
import multiprocessing
import time

REGIONS = {"us": 0.03, "eu": 0.15, "ap": 0.03, "sa": 0.03}


def settle(region):
    time.sleep(REGIONS[region])
    return region


class Billing:
    def __init__(self, pool):
        self.pool = pool

    def day(self):
        return self.pool.map(settle, REGIONS, chunksize=1)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    with multiprocessing.Pool(4) as workers:
        billing = Billing(workers)
        for _ in range(7):
            billing.day()
