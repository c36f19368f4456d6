"""Copies of requests that must not be carried out twice, during a flood of forged ones.

A client sends 3000 POSTs, and a copy of each 20 s later, while forged sources send GETs as fast as they can: no POST is carried
out twice, because requests that are safe to repeat are remembered in another table.
"""

import multiprocessing
import struct
import sys
import time

from loopback import GET, POST, Addresses, Bounds, Client, Message, Server, flood, path, request

POSTS, LATER = 3_000, 20.0
bounds, command = Bounds(), sys.argv[1]
server = Server(command, "--demo")

counter = Client(server.address())
before = int(counter.ask(GET, path("counter")).payload)
sent = multiprocessing.Value("Q", 0, lock=False)
flooder = multiprocessing.Process(target=flood, args=(server.address(), sent, GET, "counter"), daemon=True)
flooder.start()
time.sleep(1)
honest = Addresses()
begun, waiting, answered = time.monotonic(), [], {}


def listen():
    while (received := honest.receive(0)) is not None:
        message = Message(received[1])
        answered.setdefault(message.number, set()).add(message.payload)


def copy_due(now):
    while waiting and waiting[0][0] <= now:
        honest.send(7, waiting.pop(0)[1], server.address())


for number in range(POSTS):
    datagram = request(POST, number, struct.pack("!H", number), path("counter"))
    honest.send(7, datagram, server.address())
    waiting.append((time.monotonic() + LATER, datagram))
    copy_due(time.monotonic())
    listen()
    time.sleep(0.001)
while waiting:
    time.sleep(0.01)
    copy_due(time.monotonic())
    listen()
time.sleep(1)
listen()
flooder.terminate()
flooder.join()
rate = sent.value / (time.monotonic() - begun)
time.sleep(1)
done = int(counter.ask(GET, path("counter"), seconds=20).payload) - before
lost = POSTS - len(answered)
# The counter returns another number each time the request is carried out.
twice = max(done - POSTS, sum(len(numbers) > 1 for numbers in answered.values()))
bounds.check(twice == 0, f"beside {rate:.0f} forged GETs/s, {twice} of {POSTS} POSTs were carried out twice (0)")
bounds.check(done >= len(answered), f"{len(answered)} were answered, {done} carried out ({lost} lost on the way twice)")
bounds.exit()
