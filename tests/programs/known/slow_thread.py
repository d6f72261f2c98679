"""One of six Python threads takes longer.
Expected: slow-threads, known_parse, that thread."""
import statistics
import threading

from known import MS, run, shim, tell

took = [0] * 6


def work(number):
    for _ in range(10):
        shim.shim_parse(40 * MS if number == 2 else 10 * MS)
    took[number] = shim.shim_total(0)
    if number == 2:
        tell("thread", threading.get_native_id())


run(6, work)
tell("saves_ns", int(took[2] - statistics.median(took)))
