"""libknown.so by way of libshim.so, which calls it as any library does; and what programs share."""
import ctypes
import os
import threading

MS = 1000000
shim = ctypes.CDLL(os.environ["SHIM"])
shim.shim_parse.argtypes = shim.shim_pack.argtypes = [ctypes.c_long]
shim.shim_total.restype = ctypes.c_long


def tell(what, number):
    with open("truth", "a") as truth:
        print(what, number, file=truth)


def run(count, work):
    threads = [threading.Thread(target=work, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
