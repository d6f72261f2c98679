# A server, clients, timeouts and a child process, all in greenlets of one thread, and a pool of threads.
from gevent import monkey

monkey.patch_all()

import gevent
import gevent.pool
import gevent.queue
import gevent.server
import socket
import subprocess
import zlib


def serve(connection, _):
    with connection, connection.makefile("rwb") as lines:
        for line in lines:
            lines.write(b"%d\n" % zlib.crc32(line))
            lines.flush()


def ask(n):
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        lines = connection.makefile("rwb")
        answers = []
        for i in range(20):
            lines.write(b"line %d of %d\n" % (i, n))
            lines.flush()
            answers.append(int(lines.readline()))
        return sum(answers)


def wait(n):
    try:
        with gevent.Timeout(0.01):
            gevent.sleep(10)
    except gevent.Timeout:
        return f"{n} waited long enough"


server = gevent.server.StreamServer(("127.0.0.1", 0), serve)
server.start()
print(gevent.pool.Pool(20).map(ask, range(50)))
server.stop()
print(gevent.pool.Pool(10).map(wait, range(20)))

queue = gevent.queue.Queue(3)
makers = [gevent.spawn(lambda i=i: [queue.put(i * j) for j in range(50)]) for i in range(4)]
taken = gevent.spawn(lambda: sum(queue.get() for _ in range(200)))
gevent.joinall(makers + [taken])
print(taken.value)
print(gevent.get_hub().threadpool.map(lambda n: zlib.adler32(bytes(n)), range(0, 10000, 1000)))
print(subprocess.run(["echo", "a child"], capture_output=True).stdout)
killed = gevent.spawn(sorted, range(100), key=lambda it: gevent.sleep(1))
gevent.sleep(0)
killed.kill()
print(killed.dead)
