# SPDX-License-Identifier: Apache-2.0
"""hdf5_damage.py: changes a few bytes of an HDF5 file, and repairs the checksums of its metadata
so that the HDF5 library goes on with what the bytes say."""
import struct

_MASK = 0xFFFFFFFF
_SIGNATURES = (b"\x89HDF\r\n\x1a\n", b"OHDR", b"OCHK", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTIN",
               b"BTLF", b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EASB", b"EADB", b"FSHD", b"FSSE",
               b"SMTB", b"SMLI")
_LONGEST = 2400  # bytes under one checksum


def _rotate(x, k):
    return (x << k | x >> (32 - k)) & _MASK


def checksum(data):
    """Bob Jenkins' lookup3, which HDF5 uses for its metadata."""
    a = b = c = (0xDEADBEEF + len(data)) & _MASK
    whole = max(len(data) - 1, 0) // 12 * 12
    for x, y, z in struct.iter_unpack("<III", data[:whole]):
        a, b, c = (a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK
        for k in (4, 6, 8, 16, 19, 4):
            a = ((a - c) & _MASK) ^ _rotate(c, k)
            c = (c + b) & _MASK
            a, b, c = b, c, a
    rest = data[whole:]
    if not rest:
        return c
    x, y, z = struct.unpack("<III", rest.ljust(12, b"\0"))
    a, b, c = (a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK
    for k in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _rotate(b, k)) & _MASK
        a, b, c = b, c, a
    # Seven steps have turned the names round once more than a full turn.
    return b


def checked_parts(data):
    """The parts (begin, end) of a file whose checksum is the four bytes after `end`."""
    parts = []
    for signature in _SIGNATURES:
        begin = data.find(signature)
        while begin >= 0:
            for end in range(begin + len(signature), min(begin + _LONGEST, len(data) - 4)):
                stored = struct.unpack_from("<I", data, end)[0]
                if stored != 0 and stored == checksum(data[begin:end]):
                    parts.append((begin, end))
                    break
            begin = data.find(signature, begin + 1)
    return parts


class Sample:
    """The bytes of a file, where they may be changed, and where its checksums are."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.parts = checked_parts(self.data)
        # Long runs of equal bytes are padding, which says nothing.
        equal = 0
        self.places = []
        for i, byte in enumerate(self.data):
            equal = equal + 1 if i > 0 and byte == self.data[i - 1] else 0
            if equal < 16:
                self.places.append(i)

    def damaged(self, random):
        """A damaged copy, drawn from the generator `random`."""
        data = bytearray(self.data)
        if random.random() < 0.02:
            return bytes(data[: random.randrange(1, len(data))])
        changed = []
        for _ in range(random.choice((1, 1, 1, 1, 2, 3))):
            at = random.choice(self.places)
            size = self._change(data, at, random)
            changed.extend(range(at, at + size))
        if random.random() < 0.8:
            for begin, end in self.parts:
                if any(begin <= at < end for at in changed):
                    struct.pack_into("<I", data, end, checksum(bytes(data[begin:end])))
        return bytes(data)

    @staticmethod
    def _change(data, at, random):
        """Changes the bytes from `at`. Returns how many."""
        kind = random.randrange(6)
        size = min(random.choice((1, 2, 4, 8)), len(data) - at)
        if kind <= 1:
            data[at] ^= 1 << random.randrange(8)
            return 1
        if kind == 2:
            data[at] = random.choice((0, 1, 2, 3, 4, 8, 16, 0x7F, 0x80, 0xFE, 0xFF))
            return 1
        if kind == 3:
            value = random.choice((0, 1, 2, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1))
        elif kind == 4:
            value = int.from_bytes(data[at : at + size],
                                   "little") + random.choice((-8, -1, 1, 2, 8))
        else:
            begin = random.randrange(len(data) - size + 1)
            value = int.from_bytes(data[begin : begin + size], "little")
        data[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
        return size
