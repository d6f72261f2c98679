# The other end of a connection, which is not recorded, answers late.
# cause: slow-peer
# object: socket 127.0.0.1
# size: told
import os
import socket
import subprocess
import sys
import time

SERVER = """
import socket, sys, time
listening = socket.socket(fileno=int(sys.argv[1]))
peer, _ = listening.accept()
while peer.recv(1):
    time.sleep(0.025)
    peer.send(b"!")
"""

listening = socket.create_server(("127.0.0.1", 0))
environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
number = listening.fileno()
server = subprocess.Popen([sys.executable, "-c", SERVER, str(number)], pass_fds=[number], env=environment)
peer = socket.create_connection(listening.getsockname())
waited = 0
for _ in range(20):
    start = time.monotonic_ns()
    peer.send(b"?")
    peer.recv(1)
    waited += time.monotonic_ns() - start
peer.close()
server.wait()
with open("truth", "a") as truth:
    print("size_ns", waited, file=truth)
