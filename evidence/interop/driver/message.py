"""A parser of datagrams (RFC 7252 §3), for checks of what was sent."""

from dataclasses import dataclass

CONFIRMABLE, NON_CONFIRMABLE, ACKNOWLEDGEMENT, RESET = range(4)
OBSERVE, CONTENT_FORMAT, BLOCK2, BLOCK1 = 6, 12, 23, 27


@dataclass
class Message:
    """A message with its type, its code as text ("2.05"), and its options as a list of number and bytes."""

    type: int
    code: str
    id: int
    token: bytes
    options: list

    @classmethod
    def read(cls, data):
        """Parses a message; raises ValueError or IndexError if it is malformed."""
        if data[0] >> 6 != 1:
            raise ValueError("no message of version 1")
        length = data[0] & 15
        options, number, place = [], 0, 4 + length
        while place < len(data) and data[place] != 0xFF:
            delta, size = data[place] >> 4, data[place] & 15
            place += 1
            extended = []
            for nibble in (delta, size):
                width, offset = {13: (1, 13), 14: (2, 269)}.get(nibble, (0, nibble))
                extended.append(offset + int.from_bytes(data[place:place + width], "big"))
                place += width
            number += extended[0]
            options.append((number, data[place:place + extended[1]]))
            place += extended[1]
        code = f"{data[1] >> 5}.{data[1] & 31:02}"
        return cls(data[0] >> 4 & 3, code, int.from_bytes(data[2:4], "big"), data[4:4 + length], options)

    def option(self, number):
        """Returns the first value of an option as an unsigned integer, or None."""
        return next((int.from_bytes(value, "big") for found, value in self.options if found == number), None)

    def block(self, number):
        """Returns number and size in bytes of Block1 or Block2 (RFC 7959 §2.2), or None."""
        value = self.option(number)
        return None if value is None else (value >> 4, 16 << (value & 7))

    @property
    def is_request(self):
        return "0.01" <= self.code <= "0.31"
