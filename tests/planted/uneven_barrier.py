# Four threads meet at a threading.Barrier after each step; one of them takes 40 ms for its part, the others 5 ms. The others wait, and
# the part of it that all could share is lost: three quarters.
# cause: uneven-work
# group: Solver.run
# object: PyThread_acquire_lock_timed
# says: the 3 others wait
# says: rounds of work that
# says: of it in clock_nanosleep
# size: told
import threading
import time

STEPS = 30


class Grid:
    def __init__(self):
        self.gate = threading.Barrier(4)


class Solver(threading.Thread):
    def __init__(self, grid, rank):
        super().__init__(name=f"solver-{rank}")
        self.grid, self.rank, self.waited = grid, rank, 0.0

    def relax(self):
        time.sleep(0.040 if self.rank == 2 else 0.005)

    def run(self):
        for _ in range(STEPS):
            self.relax()
            begin = time.monotonic()
            self.grid.gate.wait()
            self.waited += time.monotonic() - begin


grid = Grid()
solvers = [Solver(grid, rank) for rank in range(4)]
for solver in solvers:
    solver.start()
for solver in solvers:
    solver.join()
waited = sorted(solver.waited for solver in solvers)[-1]
with open("truth", "a") as truth:
    truth.write(f"size_ns {int(waited * 0.75 * 1e9)}\n")
