"""What is measured. Every function takes a stack through one question in one round and yields (condition, measure, value)."""

from dataclasses import dataclass

from .process import Client, Failure, Server

#: Closed-loop clients at a time.
CLIENTS = (1, 16, 128, 1024)
#: Malformed datagrams a second.
FLOODS = (10_000, 50_000)
#: Seconds after which a request of a source that asks once, or one in a flood, counts as lost. A flood may last 2 s only.
SOURCE_TIMEOUT, FLOOD_TIMEOUT = 1, 0.1


@dataclass
class Extent:
    """How much is measured."""

    #: Seconds under load before anything is measured.
    warm_up: float = 2
    #: Seconds that each number of clients runs before it is measured, and is measured.
    settle: float = 0.5
    seconds: float = 2
    #: Seconds after which a request of theirs counts as lost; well below the two together, or losses would not show.
    timeout: float = 1
    #: Sources that ask once.
    sources: int = 20_000
    #: Requests of a client before it is measured, and measured.
    client_warm_up: int = 5_000
    client_requests: int = 10_000
    #: Malformed datagrams of a flood.
    datagrams: int = 100_000


QUICK = Extent(warm_up=0.5, settle=0.3, seconds=0.5, timeout=0.2, sources=2_000, client_warm_up=500, client_requests=1_000,
               datagrams=10_000)


class Bench:
    """The cores (server's, generator's), the generator, the floor and the extent."""

    def __init__(self, cores, generator, floor, extent):
        self.cores, self.generator, self.floor, self.extent = cores, generator, floor, extent

    def server(self, peer, cores=None):
        """A server that has not been started yet."""
        return Server(peer, cores or self.cores, self.generator)

    def warm_up(self, server):
        """The same history for every server that is measured."""
        extent = self.extent
        server.load("load", first_address="127.0.4.1", clients=16, settle=0, seconds=extent.warm_up,
                    timeout=extent.timeout)

    def loads(self, server):
        """The clients, in rising number; each number from an address of its own, so that no Message ID is used twice."""
        for index, clients in enumerate(CLIENTS, 1):
            got = server.load("load", first_address=f"127.0.1.{index}", clients=clients, settle=self.extent.settle,
                              seconds=self.extent.seconds, timeout=self.extent.timeout)
            yield clients, got

    def cpu(self, peer):
        """What a request costs, by the number of clients."""
        with self.server(peer) as server:
            self.warm_up(server)
            for clients, got in self.loads(server):
                yield from costs(clients, got)
                yield clients, "rate", got["answered"] / got["seconds"]
                yield clients, "lost_percent", percent(got["lost"], got["answered"] + got["lost"] + got["wrong"])
                yield clients, "server_core_percent", percent(got["cpu"], got["seconds"])
                yield clients, "generator_core_percent", percent(got["own_cpu"], got["seconds"])

    def sources(self, peer):
        """The same after many sources have asked once, and what was kept of each."""
        extent = self.extent
        with self.server(peer) as server:
            self.warm_up(server)
            before = server.resident_bytes()
            got = server.load("sources", first_address="127.1.0.1", count=extent.sources, timeout=SOURCE_TIMEOUT)
            yield from wrongs("sources", got)
            yield "sources", "answered_percent", percent(got["answered"], extent.sources)
            yield "sources", "bytes_a_source", (server.resident_bytes() - before) / extent.sources
            for clients, got in self.loads(server):
                yield from costs(clients, got)

    def client(self, peer):
        """What a request costs a client, against the bare responder."""
        if peer.client is None:
            return
        extent = self.extent
        with self.server(self.floor, self.cores[::-1]) as server, Client(peer.client, server.port, self.cores[0]) as client:
            client.ask(extent.client_warm_up)
            before = client.cpu_seconds()
            answered = client.ask(extent.client_requests)
            used = client.cpu_seconds() - before
            if answered < extent.client_requests:
                yield "client", "problem", f"{extent.client_requests - answered} requests were not answered rightly"
            yield "client", "cpu_us", used / extent.client_requests * 1e6

    def flood(self, peer):
        """What is left for a client while malformed datagrams come."""
        extent = self.extent
        for rate in FLOODS:
            with self.server(peer) as server:
                self.warm_up(server)
                got = server.load("flood", first_address="127.0.2.1", rate=rate, datagrams=extent.datagrams,
                                  seconds=extent.seconds, timeout=FLOOD_TIMEOUT)
            yield from wrongs(rate, got)
            if not got["quiet_answered"]:
                raise Failure("no request was answered before the flood")
            quiet = got["quiet_answered"] / got["quiet_seconds"]
            yield rate, "quiet_rate", quiet
            yield rate, "completed_percent", percent(got["answered"], got["answered"] + got["lost"] + got["wrong"])
            yield rate, "rate_percent", percent(got["answered"] / got["seconds"], quiet)
            yield rate, "flood_rate", got["sent"] / got["seconds"]
            yield rate, "server_core_percent", percent(got["cpu"], got["seconds"])


QUESTIONS = ("cpu", "sources", "client", "flood")


def costs(condition, got):
    """Processor time a request that was answered."""
    yield from wrongs(condition, got)
    if not got["answered"]:
        raise Failure(f"{condition} clients: no request was answered")
    yield condition, "cpu_us", got["cpu"] / got["answered"] * 1e6


def wrongs(condition, got):
    """Wrong answers are a problem that is reported; strays are late answers and duplicates, and are counted."""
    yield condition, "stray", got["stray"]
    if got["wrong"]:
        yield condition, "problem", f"{got['wrong']:.0f} wrong answers, the first: {got['problem']}"


def percent(part, whole):
    """A part in percent, 0 of nothing."""
    return 100 * part / whole if whole else 0.0
