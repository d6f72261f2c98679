"""Six Python threads do the same.
Expected: nothing."""
from known import MS, run, shim


def work(number):
    for _ in range(10):
        shim.shim_parse(20 * MS)
        shim.shim_pack(5 * MS)


run(6, work)
