# SPDX-License-Identifier: Apache-2.0
"""npy_damage.py: damaged .npy and .npz files, and NumPy as their second reader."""
import io
import zipfile

import numpy as np

from widened import widened

# The version that a member asks for says nothing about its bytes, which have a checksum: the tool
# reads on.
zipfile.MAX_EXTRACT_VERSION = 255

_KINDS = ("<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "|i1", "<i2", ">i4", "<i8", "|u1", ">u2", "<u8",
          "|b1", "<c8", ">c8", "<c16",
          "<U2")
_PIECES = (b"'", b"(", b")", b",", b"-", b"0", b"9", b"99999", b"L", b"True", b"False", b"{", b"}",
           b":", b" ", b"\n",
           b"\0", b"\xff", b"<f8", b">f4", b"|O", b"<c8", b"shape", b"descr", b"(1,)",
           b"[('x','<f4')]")


def _array(random):
    shape = random.choice(((5, 3), (3, 5), (4, 6, 3), (2, 3, 4, 2), (7,), (0, 3), (1, 1)))
    size = int(np.prod(shape))
    numbers = [random.gauss(0, 1) * 50 for _ in range(size)]
    kind = random.choice(_KINDS)
    if np.dtype(kind).kind == "c":
        numbers = [number + 1j * random.gauss(0, 1) for number in numbers]
    a = np.array(numbers).reshape(shape).astype(kind)
    data = io.BytesIO()
    np.lib.format.write_array(data, np.asarray(a, order=random.choice("CF")),
                              version=random.choice(((1, 0), (2, 0), (3, 0))))
    return data.getvalue()


def _change(data, random, places):
    at = random.choice(places)
    kind = random.randrange(6)
    if kind == 0:
        data[at] ^= 1 << random.randrange(8)
    elif kind == 1:
        data[at] = random.choice((0, 1, 2, 3, 9, 0x20, 0x2D, 0x30, 0x39, 0x7F, 0x80, 0xFF))
    elif kind == 2:
        piece = random.choice(_PIECES)
        data[at : at + len(piece)] = piece
    elif kind == 3:
        data[at:at] = random.choice(_PIECES)
    elif kind == 4:
        del data[at : at + random.choice((1, 2, 8))]
    else:
        size = min(random.choice((1, 2, 4, 8)), len(data) - at)
        value = int.from_bytes(data[at : at + size],
                               "little") + random.choice((-64, -1, 1, 64, 1 << 31))
        data[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")


def damaged(random):
    """The bytes of a .npy file with some changes, most of them in the header."""
    data = bytearray(_array(random))
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        # The text ends before the spaces.
        last = len(data) if random.random() < 0.2 else max(data.find(b"  "), 12)
        _change(data, random, range(min(last, len(data))))
        if not data:
            break
    if random.random() < 0.1:
        del data[random.randrange(len(data) + 1) :]
    return bytes(data)


def damaged_archive(random):
    """The bytes of a .npz file: a damaged array in a sound archive, or the reverse, or both."""
    target = io.BytesIO()
    method = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    arrays = {"a.npy": damaged(random) if random.random() < 0.4 else _array(random)}
    if random.random() < 0.3:
        arrays["b.npy"] = _array(random)
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, array in arrays.items():
            with archive.open(name, "w", force_zip64=random.random() < 0.5) as member:
                member.write(array)
    data = bytearray(target.getvalue())
    places = [i for mark in (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06")
              for start in _all(data, mark) for i in range(start, min(start + 60, len(data)))]
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        _change(data, random, [i for i in places if i < len(data)] if random.random() < 0.8
                else range(len(data)))
    return bytes(data)


def _all(data, mark):
    at = data.find(mark)
    while at >= 0:
        yield at
        at = data.find(mark, at + 1)


def read(path):
    """What NumPy reads, widened: the array, or the member a; None where it refuses, or where there
    are no numbers."""
    try:
        a = np.load(path, allow_pickle=False)
        if isinstance(a, np.lib.npyio.NpzFile):
            with a:
                a = a["a"]
        if a.dtype.kind not in "fiubc":
            return None
        return widened(a)
    except Exception:  # whatever the damage leads to
        return None
