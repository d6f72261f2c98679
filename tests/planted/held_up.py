# A server with an event loop sleeps in one of its callbacks, so that all its clients wait.
# cause: event-loop-held-up
# says: waits for
# says: sleep
# size: told
import asyncio
import fcntl
import os
import subprocess
import sys
import termios
import time

SLOW, QUICK, SLEEP = 5, 40, 0.06

CLIENT = """
import socket, sys
to = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
asked = 0
try:
    while True:
        asked += 1
        slow = sys.argv[2] == "0" and asked % int(sys.argv[3]) == 0
        to.send(b"s" if slow else b"q")
        if not to.recv(1):
            break
except OSError:
    pass
"""

connections, clients = [], []
slow = 0


def has_asked(transport):
    """Whether there is something to read from a connection."""
    waiting = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.FIONREAD, bytes(4))
    return any(waiting)


class Serve(asyncio.Protocol):
    def __init__(self, done):
        self.done = done

    def connection_made(self, transport):
        self.transport = transport
        connections.append(transport)

    def data_received(self, asked):
        global slow
        if asked == b"s" and slow < SLOW:
            slow += 1
            time.sleep(SLEEP)
            while not any(has_asked(other) for other in connections if other is not self.transport):
                pass
            if slow == SLOW:
                asyncio.get_running_loop().call_later(0.01, self.done.set)
        self.transport.write(b"!")


async def main():
    done = asyncio.Event()
    server = await asyncio.get_running_loop().create_server(lambda: Serve(done), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    for i in range(3):
        command = [sys.executable, "-c", CLIENT, str(port), str(i), str(QUICK)]
        clients.append(subprocess.Popen(command, env=environment))
    await done.wait()
    for transport in connections:
        transport.abort()


asyncio.run(main())
for client in clients:
    client.wait()
with open("truth", "a") as truth:
    print("size_ns", int(SLOW * SLEEP * 1e9), file=truth)
