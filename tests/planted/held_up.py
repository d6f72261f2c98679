# A server answers whoever is ready, and sleeps for one kind of request, so that all its clients wait.
# cause: event-loop-held-up
# also: slow-loading
# says: waits for
# says: sleep
# size: told
import os
import selectors
import socket
import subprocess
import sys
import time

CLIENTS, SLOW, QUICK, SLEEP = 3, 5, 40, 0.06

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


def has_asked(connection):
    """Whether there is something to read from a connection."""
    try:
        return bool(connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return False


listening = socket.create_server(("127.0.0.1", 0))
port = str(listening.getsockname()[1])
environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
clients, connections = [], []
loop = selectors.EpollSelector()
for i in range(CLIENTS):
    command = [sys.executable, "-c", CLIENT, port, str(i), str(QUICK)]
    clients.append(subprocess.Popen(command, env=environment))
for _ in range(CLIENTS):
    connections.append(listening.accept()[0])
    loop.register(connections[-1], selectors.EVENT_READ)
slow = 0
while slow < SLOW:
    for key, _ in loop.select():
        if key.fileobj.recv(1) == b"s":
            slow += 1
            time.sleep(SLEEP)
            while not any(has_asked(other) for other in connections if other is not key.fileobj):
                pass
        key.fileobj.send(b"!")
# So that it is known what was ready after the last one.
loop.select()
for connection in connections:
    connection.shutdown(socket.SHUT_RDWR)
for client in clients:
    client.wait()
with open("truth", "a") as truth:
    print("size_ns", int(slow * SLEEP * 1e9), file=truth)
