#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""strange_tables_test.py TOOL [--tables N] [--seed S]: tables as people have them, drawn over
separators, decimal signs, headers, units, titles, comments, missing numbers, keys, quotes, indexes
and odd cells. The tool regresses y on the other columns of numbers. pandas is told how the table is
written, and reads the numbers that are meant. The tool must find the same numbers under the same
names, or refuse; then its hints are followed, and whoever follows them must come to these numbers.
"""
import argparse
import collections
import csv
import dataclasses
import io
import math
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import numpy
import pandas

EVERYDAY = 60
NAMES = ["gdp %", "infl #1", "infl #2", "life exp", "Temp", "x", "load", "a-b", "Höhe", "#N",
         "% area", "1st", "n"]
WORDS = ["AT", "CH", "DE", "FR", "IT", "Côte", "New York", "NA island"]
TEXTS = {"word": lambda i: WORDS[i % len(WORDS)], "number": lambda i: f"Nr. {i + 1}",
         "day": lambda i: f"{i + 10}/03/2004", "time": lambda i: f"2012-06-{i + 10} 13:00:00",
         "hash": lambda i: f"A#{i % 2 + 1}", "truth": lambda i: ("True", "False")[i % 2]}
MISSING = ["", "NA", "nan", "#N/A", "1.#QNAN", "-1.#IND", "-", "***", "?", "-1.#IND00"]
MICROSOFT = {"1.#QNAN", "-1.#IND", "-1.#IND00"}


def plain(x, comma):
    return f"{x:g}".replace(".", "," if comma else ".")


# Cells whose numbers the tool does not read, or reads only where it is clear.
ODD = {"percent": lambda x, c: plain(x, c) + " %", "percent sign": lambda x, c: plain(x, c) + "%",
       "accountant": lambda x, c: f"({plain(-x, c)})" if x < 0 else plain(x, c),
       "currency": lambda x, c: "$" + plain(abs(x), c),
       "fortran": lambda x, c: f"{x:.3e}".replace("e", "d").replace(".", "," if c else "."),
       "minus": lambda x, c: plain(x, c).replace("-", "\u2212"),
       "quoted": lambda x, c: f'"{plain(x, c)}"'}


@dataclasses.dataclass
class Table:
    """What is meant: columns of numbers by name, in order, and the text that holds them."""
    text: str
    columns: dict
    options: list
    kind: str
    by_pandas: dict | None = None  # options of pandas.read_csv; None: pandas cannot read it
    keys: list | None = None
    response: str = "y"


class Drawing:
    """A table by chance."""

    def __init__(self, rng):
        self.rng = rng
        self.rows = rng.randint(6, 8)
        self.sep = rng.choice([",", ",", ";", "\t", " ", "|"])
        self.comma = self.sep not in ", " and rng.random() < 0.4
        self.header = rng.choice(["plain"] * 9 + ["quoted", "none", "units", "title", "comment",
                                                  "sign", "years", "gap", "na", "toa"])
        self.odd = rng.choice([None] * 12 + list(ODD))
        self.missing = rng.choice([None] * 9 + MISSING)
        self.text = rng.choice([None] * 6 + list(TEXTS))
        self.place = rng.choice(["first", "middle", "last"])
        self.index = rng.choice([None] * 5 + ["nameless", "short"])
        self.comments = rng.choice([None] * 5 + ["between", "behind"])
        self.end = rng.choice(["\n"] * 16 + ["\r\n", "\r\n", "\r\n", "\r"])
        self.trailing = rng.random() < 0.08
        self.by = rng.random() < 0.12
        self.make_clear()

    def make_clear(self):
        """Leaves out what nobody could read."""
        blank = self.sep == " "
        if self.missing in ("", None) and blank or self.header == "none":
            self.missing = None
        if blank or self.header == "none":
            self.trailing = False
            self.text = None if self.header == "none" else self.text
        if self.header not in ("plain", "quoted"):
            self.index = None
        if self.index:
            self.text, self.trailing = None, False
        if self.comma and self.missing in MICROSOFT:
            self.missing = "NA"
        if self.text is None or self.text == "truth":
            self.by = False
        if self.comments == "behind" and not blank and self.place == "last":
            self.comments = None  # it belongs to the text
        if self.header == "toa":
            self.text, self.place, self.missing = "time", "first", None

    def quoted(self, text):
        special = [self.sep, '"'] if self.sep != " " else [" ", "#", "%", '"']
        return '"' + text + '"' if any(c in text for c in special) else text

    def numbers(self):
        """The columns, y among them."""
        rng, width = self.rng, self.rng.randint(1, 3)
        names = rng.sample(NAMES, width)
        if self.header == "years":
            names = [str(2015 + j) for j in range(width)]
        names.insert(0 if self.header == "sign" else rng.randint(0, width), "y")
        names = ["m" if name == "n" and self.by else name for name in names]
        return {name: [round(rng.uniform(-20, 90), rng.randint(0, 3)) for _ in range(self.rows)]
                for name in names}

    def table(self):
        rng = self.rng
        columns = self.numbers()
        if self.odd == "currency":
            columns = {name: [abs(x) for x in of] for name, of in columns.items()}
        odd = rng.choice(list(columns)) if self.odd else None
        cells = {name: [(ODD[self.odd] if name == odd else plain)(x, self.comma) for x in of]
                 for name, of in columns.items()}
        if self.odd == "fortran":
            columns[odd] = [float(f"{x:.3e}") for x in columns[odd]]
        if self.missing is not None:
            name, row = rng.choice(list(columns)), rng.randrange(1, self.rows)
            columns[name][row], cells[name][row] = math.nan, self.missing
        names, fields = list(columns), [list(of) for of in zip(*cells.values())]
        keys = None
        if self.text:
            words = [TEXTS[self.text](i) for i in range(self.rows)]
            at = {"first": 0, "middle": len(names) // 2, "last": len(names)}[self.place]
            names.insert(at, "key")
            for row, word in zip(fields, words):
                row.insert(at, self.quoted(word))
            keys = words if self.by else None
        return self.written(names, fields, columns, keys)

    def written(self, names, fields, columns, keys):
        rng, sep = self.rng, self.sep
        head, skipped = self.head(names), 0
        if self.header in ("title", "toa"):
            skipped = 1
        if self.index:
            fields = [[str(i + (self.index == "short"))] + row for i, row in enumerate(fields)]
        rows = [sep.join(row) for row in fields]
        if self.trailing:
            rows, head = [row + sep for row in rows], [line + sep for line in head]
        if self.comments == "between":
            rows.insert(len(rows) // 2, "# the second half")
        if self.comments == "behind":
            rows[1] += " # checked"
        by_pandas = {"sep": sep, "decimal": "," if self.comma else ".", "skiprows": skipped,
                     "skipinitialspace": False, "index_col": False,
                     "na_values": [self.missing] if self.missing else []}
        is_readable = (self.odd in (None, "quoted") and self.comments is None
                       and self.header in ("plain", "quoted", "none", "title")
                       and self.index != "short")
        if self.header == "none":
            by_pandas["header"] = None
            columns = {f"column {j + 1}": of for j, of in enumerate(columns.values())}
        last = len(columns)
        options = ["--missing", "skip"] if self.missing is not None else []
        kind = ", ".join(f"{name} {value}" for name, value in vars(self).items()
                         if name not in ("rng", "rows") and value)
        response = "y" if self.header != "none" else str(last)
        if rng.random() < 0.2 and self.header != "none":
            by_pandas["keeps"] = names
        return Table(self.end.join(head + rows) + self.end, columns, options, kind,
                     by_pandas if is_readable else None, keys, response)

    def head(self, names):
        """The lines above the rows."""
        sep, rng = self.sep, self.rng
        line = sep.join('"' + name + '"' if self.header == "quoted" else self.quoted(name)
                        for name in names)
        if self.index == "nameless":
            line = ('""' if self.sep == " " else "") + sep + line
        units = sep.join(rng.choice(["m/s", "degC", "kg", "-"]) for _ in names)
        if self.header == "none":
            return []
        if self.header == "units":
            return [line, units]
        if self.header == "title":
            return ["Made by a logger", line]
        if self.header == "comment":
            return ["# made by a program", line]
        if self.header == "sign":
            return ["# " + line]
        if self.header == "gap":
            line = sep.join('""' if sep == " " and not name else name for name in
                            [self.quoted(name) for name in names[:-1]] + [self.quoted(names[-1])])
        if self.header == "toa":
            return [sep.join(["TOA5", "11", "CPU"]) + sep * 0, line, units, units]
        return [line]


def expected(table):
    """The coefficients by name; of each group where there are keys."""
    y = numpy.array(list(table.columns.values())[-1] if table.response != "y"
                    else table.columns["y"])
    rest = {name: of for name, of in table.columns.items()
            if name != ("y" if table.response == "y" else f"column {table.response}")}
    a = numpy.column_stack([numpy.ones(len(y)), *rest.values()])
    used = ~numpy.isnan(a).any(axis=1) & ~numpy.isnan(y)
    if table.keys is None:
        return {(): dict(zip(["(intercept)", *rest], solution(a[used], y[used])))}
    groups = {}
    for key in dict.fromkeys(table.keys):
        of = used & (numpy.array(table.keys) == key)
        groups[key] = int(of.sum())
    return groups


def solution(a, y):
    if a.shape[0] < a.shape[1]:
        return [math.nan] * a.shape[1]
    return numpy.linalg.lstsq(a, y, rcond=None)[0]


class Run:
    """A command and the file that it reads."""

    def __init__(self, tool, table, name):
        self.tool, self.table, self.name = tool, table, name
        self.options, self.content = list(table.options), table.text.encode()

    def copy(self):
        other = Run(self.tool, self.table, self.name)
        other.options, other.content = list(self.options), self.content
        return other

    def start(self):
        pathlib.Path(self.name).write_bytes(self.content)
        by = ["--by", "key"] if self.table.keys else []
        return subprocess.run([self.tool, "solve", self.name, "-", "--response",
                               self.table.response, "--intercept", *by, *self.options],
                              capture_output=True, text=True, check=False, timeout=60)

    def is_right(self, done):
        wanted, lines = expected(self.table), list(csv.DictReader(io.StringIO(done.stdout)))
        if self.table.keys:
            return {line["key"]: int(line["n"]) for line in lines} == wanted
        found = {line["term"]: float(line["x"]) for line in lines}
        of = wanted[()]
        # A name at the start of a line that begins with # or % may lack it.
        found = {name.lstrip("#% "): x for name, x in found.items()}
        of = {name.lstrip("#% "): x for name, x in of.items()}
        return list(found) == list(of) and all(
            math.isnan(found[name]) if math.isnan(of[name]) else
            math.isclose(found[name], of[name], rel_tol=1e-6, abs_tol=1e-8) for name in of)

    def set(self, option, value):
        while option in self.options:
            at = self.options.index(option)
            del self.options[at : at + 2]
        self.options += [option, value]

    def follow(self, hint, message):
        """Does what a hint says. Returns None where it is not understood."""
        run = self.copy()
        command = re.search(r"((?:sed|tr|iconv) .*) > (\S+)$", hint)
        if command:
            subprocess.run(command.group(), shell=True, check=True)
            run.content = pathlib.Path(command.group(2)).read_bytes()
            return run
        given = re.findall(r"--(\S+) ('[^']*'|\S+)", hint.split(" leaves out the rows")[0])
        if given:
            for option, value in given:
                run.set("--" + option, shlex.split(value)[0])
            return run
        line = re.search(r"remove line (\d+)", hint)
        if line:
            lines = run.content.splitlines(keepends=True)
            del lines[int(line.group(1)) - 1]
            run.content = b"".join(lines)
            return run
        return run if run.edit(hint, message) else None

    def edit(self, hint, message):
        """Writes a cell as a hint says, in the place that the message names."""
        place = re.match(r"qrtool: .*?:(\d+):(\d+): '(.*?)' is not a number", message)
        if not place:
            return False
        row, column, old = int(place.group(1)) - 1, int(place.group(2)) - 1, place.group(3)
        new = re.search(r"(?:write|e:|ASCII:|currency:|thousands:) (-?[\d.,]+(?:e[+-]?\d+)?)$",
                        hint)
        if "percent sign" in hint:
            new = old.rstrip("% ")
        elif hint.startswith("write 1 and 0"):
            new = "1" if old.lower() == "true" else "0"
        elif new:
            new = new.group(1)
        else:
            return False
        lines = self.content.split(b"\n")
        end = column + len(old.encode())
        if lines[row][column : column + 1] == b'"':
            end += 2
        lines[row] = lines[row][:column] + new.encode() + lines[row][end:]
        self.content = b"\n".join(lines)
        return True


def judge(run, steps=60):
    """The verdict on a run, and on whoever follows its hints: right, refused or wrong."""
    done = run.start()
    says_nan = done.returncode == 1 and "hint: --missing skip" in done.stderr
    if done.returncode in (0, 1) and done.stdout and not says_nan:
        return ("right" if run.is_right(done) else "wrong", [done])
    if done.returncode not in (1, 2, 3):
        return "wrong", [done]
    hint = re.search(r"^hint: (.*)$", done.stderr, re.MULTILINE)
    if not hint or hint.group(1).startswith("the columns are"):
        return "refused", [done]
    if steps == 0:
        return "wrong: the hints do not end", [done]
    found = []
    for part in hint.group(1).split("; "):
        follower = run.follow(part, done.stderr)
        if follower is None:
            continue
        verdict, trace = judge(follower, steps - 1)
        found.append((verdict, [done, *trace]))
    if not found:
        return f"not followed: {hint.group(1)}", [done]
    # Where there are several parts, a condition says which is meant.
    for wanted in ("right", "by a hint", "refused"):
        for verdict, trace in found:
            if verdict == wanted:
                return "by a hint" if wanted != "refused" else wanted, trace
    return found[0]


def same_by_pandas(table):
    """Whether pandas reads the numbers that are meant."""
    options = dict(table.by_pandas)
    options.pop("keeps", None)
    frame = pandas.read_csv(io.StringIO(table.text.replace("\r\n", "\n").replace("\r", "\n")),
                            **options)
    frame = frame.loc[:, [c for c in frame.columns if not str(c).startswith("Unnamed")]]
    frame = frame.drop(columns=["key"], errors="ignore")
    numbers = frame.replace(list(MICROSOFT), math.nan).astype(float)
    names = [str(c) for c in frame.columns]
    wanted = list(table.columns)
    is_named = options.get("header", 0) is not None
    return (not is_named or names == wanted) and numpy.allclose(
        numbers.to_numpy(), numpy.column_stack(list(table.columns.values())), equal_nan=True)


def draw(count, seed):
    for i in range(count):
        yield Drawing(random.Random(seed * 1000003 + i)).table()


def run_all(tool, count, seed):
    """Counts of verdicts, and what was wrong."""
    counts, bad, read = collections.Counter(), [], 0
    for table in draw(count, seed):
        if table.by_pandas is not None and table.keys is None:
            read += 1
            if not same_by_pandas(table):
                bad.append(("pandas reads other numbers", table, []))
        verdict, trace = judge(Run(tool, table, "t.csv"))
        counts[verdict.split(":")[0]] += 1
        if verdict not in ("right", "by a hint", "refused"):
            bad.append((verdict, table, trace))
    return counts, bad, read


def report(bad):
    text = ""
    for verdict, table, trace in bad[:8]:
        text += f"\n==== {verdict} ({table.kind})\n{table.text!r}\n{table.text}"
        text += f"meant {expected(table)}\n"
        for done in trace:
            text += f"$ {shlex.join(map(str, done.args[1:]))}\n{done.stderr}{done.stdout}"
    return text


class StrangeTables(unittest.TestCase):
    tool, tables, seed = "", EVERYDAY, 1

    def test_no_table_and_no_hint_is_wrong(self):
        counts, bad, read = run_all(self.tool, self.tables, self.seed)
        print(f"{self.tables} tables, {read} of them read by pandas: {dict(counts)}")
        self.assertEqual(len(bad), 0, report(bad))
        self.assertGreater(counts["right"], self.tables // 8)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("--tables", type=int, default=EVERYDAY)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    StrangeTables.tool = os.path.abspath(args.tool)
    StrangeTables.tables, StrangeTables.seed = args.tables, args.seed
    with tempfile.TemporaryDirectory(prefix="qrtool-strange-") as folder:
        os.chdir(folder)
        unittest.main(argv=sys.argv[:1], verbosity=1)


if __name__ == "__main__":
    main()
