# SPDX-License-Identifier: Apache-2.0
"""csv_damage.py: CSV files in many dialects, damaged, and a second reader of them that is plain and
slow."""
import gzip
import re
import zlib

import numpy as np

from widened import widened

_ENDS = ("\n", "\r\n")
_PIECES = (b",", b";", b"\t", b" ", b"\n", b"\r", b"\n\n", b"#", b"\"", b"-", b"+", b".", b"e",
           b"1e999",
           b"nan", b"inf", b"\0", b"\xff", b"\xef\xbb\xbf", b"0x10", b"1d3", b"1,5", b"NA", b"%",
           b"#N/A", b",,",
           b";;\n", b"\"\"", b"0,1,2\n", b"1+2i", b"sep=;\n", b"1,234")
_WORDS = {",": "comma", ";": "semicolon", "\t": "tab", " ": "space", "|": "pipe"}
_EXCEL = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")


def _number(random, comma, is_complex):
    text = f"{random.gauss(0, 1):.6g}"
    if is_complex:
        text = random.choice(("{}{:+.6g}j", "({}{:+.6g}j)", "{}{:+.6g}i", "{}+{:.6g}j")).format(
            text, random.gauss(0, 1))
    return text.replace(".", ",") if comma else text


def _sample(random):
    """Text, options that state its dialect, and its matrices."""
    columns, separator = random.randrange(1, 6), random.choice(",;\t |")
    comma = separator != "," and random.random() < 0.4
    header, index = random.random() < 0.4, columns > 1 and random.random() < 0.3
    quotes = '"' if separator != " " and random.random() < 0.2 else ""
    matrices = 1 if index else random.choice((1, 1, 3))
    rows = random.randrange(1, 8)
    is_complex = not comma and random.random() < 0.2
    values = [[[_number(random, comma, is_complex) for _ in range(columns)] for _ in range(rows)]
              for _ in range(matrices)]
    end, lines = random.choice(_ENDS), []
    if random.random() < 0.2:
        lines.append("# a comment")
    if header or index:
        lines.append(separator.join(["\"\""] * index +
                                    [f"\"{name}\"" for name in "abcdef"[:columns]]))
    for number, matrix in enumerate(values):
        lines += [""] * (number > 0)
        for i, row in enumerate(matrix):
            lines.append(separator.join([f"\"row {i}\""] * index +
                                        [quotes + field + quotes for field in row]))
    options = ["--header", "yes" if header or index else "no", "--decimal",
               "comma" if comma else "point",
               "--delimiter", _WORDS[separator], "--index-column", "yes" if index else "no"]
    # One column of whole numbers and commas is two columns; a bar is never guessed.
    is_stated = separator == "|" or (comma and (columns == 1 or separator == " "))
    is_stated = is_stated or random.random() < 0.3
    truth = np.array([[[_value_of(x.replace(",", ".")) for x in row] for row in matrix]
                      for matrix in values])
    return (end.join(lines) +
            end).encode(), options if is_stated else [], truth[0] if matrices == 1 else truth


def _damage(random, data):
    data = bytearray(data)
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


def damaged(random):
    """The bytes of a CSV file with some changes, options, and its matrices where nothing was
    changed."""
    text, options, truth = _sample(random)
    if random.random() < 0.2:
        packed = gzip.compress(text, mtime=0)
        data = _damage(random, packed)
        return data, options, truth if data == packed else None
    data = _damage(random, text)
    return data, options, truth if data == text else None


def _is_comment(line, at, separator):
    """Comments begin at the start of a line or, where blanks alone separate, after a blank."""
    if line[at] not in "#%" or line[at:].startswith(_EXCEL):
        return False
    if not line[:at].strip(" \t"):
        return True
    is_percent = line[at] == "%" and not line[at + 1:].strip(" \t")
    return separator in (None, " ") and line[at - 1] in " \t" and not is_percent


def _without_comment(line, separator):
    in_quotes = False
    for at, character in enumerate(line):
        in_quotes ^= character == '"'
        if not in_quotes and _is_comment(line, at, separator):
            return line[:at], True
    return line, False


def _fields(line, separator):
    """The fields of a line; quotes protect separators."""
    if separator is None:
        return [line.strip(" \t").strip('"')]
    fields, field, in_quotes = [], "", False
    for character in line.strip(" \t") if separator == " " else line:
        # A quote within a field that has begun without one is a character like others.
        in_quotes ^= character == '"' and (in_quotes or not field.strip()
                                           or field.strip().startswith('"'))
        is_end = character in " \t" if separator == " " else character == separator
        if is_end and not in_quotes:
            if separator != " " or field:
                fields.append(field)
            field = ""
        else:
            field += character
    return [each.strip(" \t").strip('"') for each in fields + [field]]


def _value_of(field):
    """As 1, 1+2j, (1+2j), 1 + 2i or NumPy's 1+-2j are written."""
    try:
        return float(field)
    except ValueError:
        inner = re.sub(r"^\((.*)[ijIJ] *\)$", r"\1j", field)
        text = re.sub(r" *([+-]) *", r"\1", inner).replace("+-", "-")
        return complex(re.sub(r"[iI]$", "j", text))


def read(data, found=()):
    """The matrices of a file that qrtool accepts, read as qrtool says that it is written (`found`:
    its attributes csv_...); None where a line is no list of numbers."""
    found = dict(found)
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            return None
    separator = {word: character for character,
                 word in _WORDS.items()}.get(found.get("csv_delimiter"))
    if not found:
        separator = ","
    comma, has_header = found.get("csv_decimal") == "comma", found.get("csv_header") == "yes"
    first = 1 if found.get("csv_index_column") == "yes" else 0
    matrices, rows = [], []
    for number, line in enumerate(data.decode("utf-8-sig", errors="replace").split("\n")):
        if number == 0 and re.fullmatch(r"sep=.\r?", line):
            continue
        line, has_comment = _without_comment(line.removesuffix("\r"), separator)
        if not line.strip(" \t,;|"):
            if not has_comment or line.strip(" \t"):
                matrices += [rows] if rows else []
                rows = []
            continue
        if has_header:
            has_header = False
            continue
        try:
            row = [_value_of(field.replace(",", ".") if comma else field)
                   for field in _fields(line, separator)[first:]]
        except ValueError:
            return None
        rows.append(row)
    matrices += [rows] if rows else []
    try:
        values = widened(matrices)
    except ValueError:
        return None
    return values[0] if values.ndim == 3 and len(values) == 1 else values


# ---- Matrix Market ------------------------------------------------------------------------------


def damaged_mtx(random):
    """The bytes of a Matrix Market file with some changes."""
    rows, columns = random.randrange(1, 6), random.randrange(1, 6)
    symmetry = random.choice(("general", "general", "symmetric", "skew-symmetric"))
    if symmetry != "general":
        columns = rows
    count = {"general": rows * columns, "symmetric": rows * (rows + 1) // 2,
             "skew-symmetric": rows * (rows - 1) // 2}[symmetry]
    is_whole = random.random() < 0.3
    lines = [f"%%MatrixMarket matrix array {'integer' if is_whole else 'real'} {symmetry}",
             "% by a program",
             f"{rows} {columns}"]
    lines += [str(random.randrange(-9, 10)) if is_whole else f"{random.gauss(0, 1):.6g}"
              for _ in range(count)]
    data = ("\n".join(lines) + "\n").encode()
    if random.random() < 0.3:
        # A size that lies.
        size = random.choice((b"0 3", b"1000000 1000000", b"99999999999 9", b"3", b"-1 2",
                              b"2 2 2"))
        data = data.replace(f"\n{rows} {columns}\n".encode(), b"\n" + size + b"\n", 1)
    return _damage(random, data)


def read_mtx(data):
    lines = data.decode("utf-8-sig", errors="replace").split("\n")
    banner = lines[0].split()
    rest = [line.strip(" \t\r") for line in lines[1:]]
    begin = next(i for i, line in enumerate(rest) if line and not line.startswith("%"))
    rows, columns = map(int, rest[begin].split())
    values = [float(line) for line in rest[begin + 1 :] if line]
    matrix = np.zeros((rows, columns))
    symmetry = banner[4].lower()
    places = [(i, j) for j in range(columns) for i in range(rows)
              if symmetry == "general" or i > j or (i == j and symmetry == "symmetric")]
    if len(places) != len(values):
        return None
    for (i, j), value in zip(places, values):
        matrix[i, j] = value
        if symmetry != "general" and i != j:
            matrix[j, i] = -value if symmetry == "skew-symmetric" else value
    return matrix


OCTAVE = b"# Created by Octave"


def damaged_octave(random):
    """The bytes of a text of Octave with some changes."""
    rows, columns = random.randrange(1, 6), random.randrange(1, 6)
    numbers = [f"{random.gauss(0, 1):.6g}" for _ in range(rows * columns)]
    lines = ["# Created by Octave 7.3.0, Fri Nov 27 13:48:16 2026 UTC <user@host>", "# name: a",
             "# type: " + random.choice(("matrix", "matrix", "float matrix", "global matrix"))]
    if random.random() < 0.5:
        lines += ["# ndims: 2", f" {rows} {columns}", *(f" {number}" for number in numbers)]
    else:
        lines += [f"# rows: {rows}", f"# columns: {columns}",
                  *(" " + " ".join(numbers[i * columns : (i + 1) * columns]) for i in range(rows))]
    data = ("\n".join(lines) + "\n\n\n").encode()
    if random.random() < 0.3:
        size = random.choice((b"0", b"1000000", b"99999999999", b"-1", b"2 2"))
        data = data.replace(f"# rows: {rows}\n".encode(), b"# rows: " + size + b"\n", 1)
    return _damage(random, data)


def read_octave(data):
    """The matrix of a text with one; None where it cannot be read."""
    lines = [line.rstrip("\r") for line in data.decode("utf-8", errors="replace").split("\n")]
    try:
        at = next(i for i, line in enumerate(lines) if line.startswith("# name: ")) + 2
        if lines[at - 1].endswith("scalar"):
            return np.array([[float(lines[at])]])
        if lines[at].startswith("# ndims: "):
            rows, columns = map(int, lines[at + 1].split())
            return np.array([float(lines[at + 2 + i]) for i in range(rows * columns)]).reshape(
                (rows, columns), order="F")
        rows, columns = int(lines[at].split(": ")[1]), int(lines[at + 1].split(": ")[1])
        return np.array([[float(word) for word in lines[at + 2 + i].split()]
                         for i in range(rows)]).reshape(rows, columns)
    except (IndexError, StopIteration, ValueError):
        return None
