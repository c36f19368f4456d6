"""The measurements. Every function takes a stack through one question in one round and yields (condition, measure,
value)."""

from dataclasses import dataclass

from .process import Client, Failure, Server

#: The numbers of closed-loop clients.
CLIENTS = (1, 16, 128, 1024)
#: Malformed datagrams a second.
FLOODS = (10_000, 50_000)
#: Seconds after which a request counts as lost: of a source that makes only one, and of a client in a flood. A flood may last
#: only 2 s.
SOURCE_TIMEOUT, FLOOD_TIMEOUT = 1, 0.1


@dataclass
class Extent:
    """The amount of measuring."""

    #: Seconds under load before anything is measured.
    warm_up: float = 2
    #: Seconds that each number of clients runs: before the measurement, and during it.
    settle: float = 0.5
    seconds: float = 2
    #: Seconds after which such a request counts as lost. Much shorter than the sum of these two, or losses would not show.
    timeout: float = 1
    #: Number of sources that make one request each.
    sources: int = 20_000
    #: Requests of a client: before the measurement, and during it.
    client_warm_up: int = 5_000
    client_requests: int = 10_000
    #: Number of malformed datagrams in a flood.
    datagrams: int = 100_000


QUICK = Extent(warm_up=0.5, settle=0.3, seconds=0.5, timeout=0.2, sources=2_000, client_warm_up=500, client_requests=1_000,
               datagrams=10_000)


class Bench:
    """The cores of server and generator, the generator, the bare responder and client, and the amount of measuring."""

    def __init__(self, cores, generator, floor, extent):
        self.cores, self.generator, self.floor, self.extent = cores, generator, floor, extent

    def server(self, peer, cores=None):
        """Returns a server that has not been started yet."""
        return Server(peer, cores or self.cores, self.generator)

    def warm_up(self, server):
        """Gives every measured server an equal history."""
        extent = self.extent
        server.load("load", first_address="127.0.4.1", clients=16, settle=0, seconds=extent.warm_up,
                    timeout=extent.timeout)

    def loads(self, server):
        """Runs rising numbers of clients. Each number has an address of its own, so no Message ID is used twice."""
        for index, clients in enumerate(CLIENTS, 1):
            got = server.load("load", first_address=f"127.0.1.{index}", clients=clients, settle=self.extent.settle,
                              seconds=self.extent.seconds, timeout=self.extent.timeout)
            yield clients, got

    def cpu(self, peer):
        """Measures the cost of a request, by the number of clients."""
        with self.server(peer) as server:
            self.warm_up(server)
            for clients, got in self.loads(server):
                yield from costs(clients, got)
                yield clients, "rate", got["answered"] / got["seconds"]
                yield clients, "lost_percent", percent(got["lost"], got["answered"] + got["lost"] + got["wrong"])
                yield clients, "server_core_percent", percent(got["cpu"], got["seconds"])
                yield clients, "generator_core_percent", percent(got["own_cpu"], got["seconds"])

    def sources(self, peer):
        """Measures the cost of a request after many sources made one request each, and the memory kept for each
        source."""
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
        """Measures the cost of a request for a client, against the bare responder."""
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
        """Measures the rate of a client during a flood of malformed datagrams."""
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
    """Returns the processor time per answered request."""
    yield from wrongs(condition, got)
    if not got["answered"]:
        raise Failure(f"{condition} clients: no request was answered")
    yield condition, "cpu_us", got["cpu"] / got["answered"] * 1e6


def wrongs(condition, got):
    """Reports wrong answers as a problem. Strays are late answers and duplicates; they are only counted."""
    yield condition, "stray", got["stray"]
    if got["wrong"]:
        yield condition, "problem", f"{got['wrong']:.0f} wrong answers, the first: {got['problem']}"


def percent(part, whole):
    """Returns a part in percent, 0 if the whole is 0."""
    return 100 * part / whole if whole else 0.0
