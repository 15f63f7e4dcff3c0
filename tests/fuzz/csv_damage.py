# SPDX-License-Identifier: Apache-2.0
"""csv_damage.py: damaged CSV files, and a second reader of them that is plain and slow."""
import re

import numpy as np

_ENDS = ("\n", "\r\n")
_PIECES = (b",", b";", b"\t", b" ", b"\n", b"\r", b"\n\n", b"#", b"\"", b"-", b"+", b".", b"e", b"1e999",
           b"nan", b"inf", b"\0", b"\xff", b"\xef\xbb\xbf", b"0x10", b"1d3", b"1,5", b"NA")


def _sample(random):
    columns, separator = random.randrange(1, 6), random.choice(",;\t ")
    end, lines = random.choice(_ENDS), []
    if random.random() < 0.2:
        lines.append("# a comment")
    if random.random() < 0.2:
        lines.append(separator.join("abcdef"[:columns]))
    rows = random.randrange(1, 8)
    for matrix in range(random.choice((1, 1, 3))):
        if matrix > 0:
            lines.append("")
        for _ in range(rows):
            lines.append(separator.join(f"{random.gauss(0, 1):.6g}" for _ in range(columns)))
    return (end.join(lines) + end).encode()


def damaged(random):
    """The bytes of a CSV file with some changes."""
    data = bytearray(_sample(random))
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        at = random.randrange(len(data) + 1)
        kind = random.randrange(4)
        if kind == 0:
            data[at:at] = random.choice(_PIECES)
        elif kind == 1:
            del data[at : at + random.choice((1, 2, 5))]
        elif kind == 2 and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        else:
            data[at:at] = data[at : at + random.randrange(1, 30)]
    return bytes(data)


def read(data):
    """The matrices of a CSV file that qrtool accepts; None where a line is no list of numbers."""
    matrices, rows, is_first = [], [], True
    for line in data.decode("utf-8-sig", errors="replace").split("\n"):
        text = re.split("[#%]", line)[0].strip(" \t\r")
        if not text:
            if rows and not re.search("[#%]", line):
                matrices.append(rows)
                rows = []
            continue
        try:
            row = [float(field) for field in re.split(r"\s*[,;\t]\s*| +", text)]
        except ValueError:
            if not is_first:
                return None
            is_first = False
            continue
        is_first = False
        rows.append(row)
    if rows:
        matrices.append(rows)
    try:
        values = np.array(matrices, dtype="f8")
    except ValueError:
        return None
    return values[0] if values.ndim == 3 and len(values) == 1 else values
