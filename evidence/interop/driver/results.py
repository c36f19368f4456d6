"""The outcomes of the cases, as a table for a terminal or for the documentation."""

from dataclasses import dataclass

#: The beginning of the documentation.
HEAD = """# Interoperability

Clients and servers of other CoAP stacks, tested against ours. `evidence/interop/run --markdown` writes this page.
[evidence/interop/README.md](../evidence/interop/README.md) describes the set-up, and [cases.py](../evidence/interop/driver/cases.py) the requests and checks
of each case.

`pass`: the case succeeds. `–`: one of the two does not offer the feature. `peer`: the case fails because of the other stack. `ours`: it fails
because of ours. The reasons are below each table.
"""

#: The words of the table. A case that is neither pass nor fail has a note.
WORDS = {"pass": "pass", "fail": "FAIL", "not offered": "–", "peer": "peer", "ours": "ours"}
ROLES = {"client": "their client, our server", "server": "our client, their server"}


@dataclass
class Result:
    """The outcome of one case. `word` is a key of WORDS; `role` is that of the other stack."""

    peer: str
    role: str
    case: str
    word: str
    reason: str


class Results:
    """The results of all stacks."""

    def __init__(self, cases):
        self.cases, self.peers, self.all, self.missing = cases, [], {}, {}

    def add(self, peer, results):
        self.peers.append(peer)
        for result in results:
            self.all[peer.name, result.role, result.case] = result

    def broken(self, peer, reason):
        """Records that a stack did not reach its cases."""
        self.add(peer, [Result(peer.name, role, case, "fail", reason) for role in ROLES for case in self.cases])

    def failed(self):
        return any(result.word == "fail" for result in self.all.values())

    def rows(self, role):
        """Returns the header, and a row for each case of one direction."""
        names = [peer.name for peer in self.peers]
        return [["case", *names]] + [[case, *(WORDS[self.all[name, role, case].word] for name in names)] for case in self.cases]

    def notes(self):
        """Returns the reasons of the cases that did not pass. Cases with equal reasons share a line."""
        found = {}
        for result in self.all.values():
            if result.word != "pass":
                found.setdefault((result.peer, result.role, result.word, result.reason), []).append(result.case)
        return [(peer, role, word, ", ".join(cases), reason) for (peer, role, word, reason), cases in found.items()]

    def text(self):
        lines = [f"{peer.name}: {peer.version}" for peer in self.peers]
        for role, title in ROLES.items():
            rows = self.rows(role)
            widths = [max(map(len, column)) for column in zip(*rows)]
            lines += ["", title]
            lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        notes = [f"{peer} as {role}, {cases}: {word}: {reason}" for peer, role, word, cases, reason in self.notes()]
        return "\n".join([*lines, "", *notes])

    def markdown(self):
        lines = [HEAD, *(f"* `{peer.name}`: {peer.version}" for peer in self.peers)]
        for role, title in ROLES.items():
            header, *rows = self.rows(role)
            lines += ["", f"## {title[0].upper()}{title[1:]}", "", row(header), row(["---"] * len(header)), *map(row, rows)]
            lines += ["", *(f"* `{peer}`, {cases}: {WORDS[word] + ': ' if word != 'not offered' else ''}{reason}." for peer, of, word, cases, reason in self.notes()
                            if of == role)]
        return "\n".join(lines)


def row(cells):
    return f"| {' | '.join(cells)} |"
