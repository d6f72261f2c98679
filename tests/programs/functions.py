"""Threads by every kind of callable that Python has, one after the other."""
import _thread
import functools
import threading
import time
from concurrent.futures import ThreadPoolExecutor


def plain():
    pass


class Sub(threading.Thread):
    def run(self):
        # What the hook looks at must not be looked at by way of this.
        pass

    def __getattribute__(self, name):
        if name == "_target":
            print("somebody asks for the target")
        return super().__getattribute__(name)


class SubSub(Sub):
    pass


class Owner:
    def method(self):
        pass

    def __call__(self):
        pass


def inner():
    def nested():
        pass

    return nested


threads = [
    threading.Thread(target=plain),
    Sub(),
    SubSub(),
    threading.Thread(target=Owner().method),
    threading.Thread(target=Owner()),
    threading.Thread(target=lambda: None),
    threading.Thread(target=inner()),
    threading.Thread(target=functools.partial(plain)),
    threading.Thread(target=time.sleep, args=(0,)),
    threading.Thread(target=plain, name="Größe"),
    threading.Timer(0, plain),
    threading.Thread(),
]
# An object whose attributes are in a dictionary of its own.
threads[0].__dict__["more"] = 1
# One with many, and one with attributes that are no names.
for number in range(100):
    setattr(threads[3], f"attribute_{number}", number)
threads[4].__dict__[("a", "tuple")] = 1
for thread in threads:
    thread.start()
    thread.join()
with ThreadPoolExecutor(2) as executor:
    print(list(executor.map(lambda n: time.sleep(0.01) or n, range(4))))
done = _thread.allocate_lock()
done.acquire()
_thread.start_new_thread(done.release, ())
done.acquire()
print(threads[0].more, threads[3].attribute_99, threading.active_count())
