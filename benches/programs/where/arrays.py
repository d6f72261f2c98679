"""Arrays on four threads: products in BLAS, elementwise functions, sorting."""
import threading

import numpy


def work(seed):
    random = numpy.random.default_rng(seed)
    for _ in range(14):
        a = random.random((320, 320))
        for _ in range(3):
            a = numpy.tanh(a @ a / 100)
        values = random.random(400_000)
        values.sort()
        sum(values[:40_000].tolist())


threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
