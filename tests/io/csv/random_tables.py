#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""random_tables.py READER [--tables N] [--seed S]: tables as pandas, R, Excel, Octave and MATLAB
write them, read by the tool and by pandas, and those of R by R: the same numbers under the same
names, or a refusal. READER is the program qrtool_read_tables."""
import argparse
import collections
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import pandas

NAMES = ["x", "y1", "gdp", "life exp", "a-b", "Höhe", "temp", "b", "z_2", "w", 'in "q"', "p", "n"]
WORDS = ["AT", "CL", "Mazda RX4", "Fiat 128", "de", "Ohne Namen", "k"]


class Table:
    """Text, and what is meant by it."""

    def __init__(self, rng):
        self.rng = rng
        self.kind = rng.choice(["pandas", "pandas", "R", "R", "Excel", "Octave", "MATLAB"])
        self.rows, self.width = rng.randint(2, 8), rng.randint(1, 6)
        self.is_clear = True  # nothing in it has two meanings
        self.sep, self.decimal = rng.choice(
            [(",", "."), (";", ","), (";", "."), ("\t", "."), ("\t", ",")])
        self.header = rng.random() < 0.75
        self.index = rng.choice(["none", "none", "number", "word", "date"])
        if self.kind in ("Octave", "MATLAB"):
            self.index, self.header = "none", self.kind == "MATLAB" and rng.random() < 0.5
            self.sep = rng.choice([",", " "]) if self.kind == "Octave" else ","
            self.decimal = "."
        if self.kind == "Excel":
            self.index = "none"
        self.quotes = self.kind == "R" and rng.random() < 0.7
        if self.kind == "R" and rng.random() < 0.4:
            self.sep, self.decimal = " ", rng.choice([".", ","])
        if self.kind == "R" and self.index in ("none", "date"):
            self.index = rng.choice(["none", "word"])
        if not self.header and self.index != "none":
            self.index = "none"
        if not self.header and self.width == 1 and self.decimal == ",":
            self.decimal = "."
        self.short = self.kind == "R" and self.index != "none" and rng.random() < 0.6
        self.missing = rng.choice(["", "NA", "NaN", "nan", "#N/A"]) if rng.random() < 0.3 else None
        if (self.sep == " " or self.width == 1) and self.missing == "":
            self.missing = "NA"
        # The comma may separate; a name that ends in a number may be a name and a number.
        if (self.decimal == "," and (self.sep == " " or self.width == 1)) or (
                self.short and self.sep == "," and not self.quotes):
            self.is_clear = False
        self.name_columns()
        # A header that is short by one, with a name of two words, has as many words as rows have
        # fields.
        if self.short and not self.quotes and any(" " in name for name in self.names):
            self.is_clear = False
        self.numbers = [[self.number() for _ in range(self.width)] for _ in range(self.rows)]
        # A row without a number is as good as a blank line; the first row says what separates.
        gaps = [sum(map(math.isnan, row)) for row in self.numbers]
        if self.missing == "" and (self.width in gaps or (gaps[0] and not self.header)):
            self.is_clear = False
        self.write()

    def name_columns(self):
        rng, width = self.rng, self.width
        # R writes a quote as \\", which pandas does not read.
        self.names = rng.sample([n for n in NAMES if self.kind != "R" or '"' not in n], width)
        if not self.header:
            return
        style = rng.random()
        if style < 0.1:
            self.names = [str(2015 + j) for j in range(width)]
        elif style < 0.2:
            self.names = [str(j) for j in range(width)]
        elif style < 0.27:
            self.names[rng.randrange(width)] = self.names[0]
        elif style < 0.34:
            self.names[rng.randrange(width)] = "" if width > 1 else "v"
        elif style < 0.4:
            self.names[rng.randrange(width)] = str(rng.randint(1, 9)) if width > 1 else "v"
        if style < 0.4:
            self.is_clear = False

    def number(self):
        rng, kind = self.rng, self.rng.random()
        if self.missing is not None and kind < 0.15:
            return math.nan
        if kind < 0.4:
            return float(rng.randint(-20, 300))
        if kind < 0.9:
            return round(rng.uniform(-50, 50), rng.randint(1, 6))
        return float(f"{rng.uniform(-1, 1) * 10 ** rng.randint(-12, 12):.15g}")

    def text_of(self, number):
        if math.isnan(number):
            return self.missing
        text = str(int(number)) if number == int(number) and abs(number) < 1e9 else repr(number)
        return text.replace(".", self.decimal)

    def quoted(self, text):
        needs = any(c in text for c in '",\n;\t') or (self.sep == " " and " " in text)
        if self.quotes or needs:
            return '"' + text.replace('"', '""') + '"'
        return text

    def index_of(self, row):
        if self.index == "number":
            return str(row) if self.kind != "R" else self.quoted(str(row + 1))
        if self.index == "date":
            return f"2020-01-{row + 1:02}"
        word = f"{WORDS[row % len(WORDS)]} {row}" if self.kind == "R" else WORDS[row % 7]
        return self.quoted(word)

    def write(self):
        lines = []
        with_index = self.index != "none"
        # pandas names an index or leaves it without a name.
        self.index_name = "" if self.kind == "R" or self.rng.random() < 0.7 else "id"
        if self.header:
            names = [self.quoted(name) for name in self.names]
            if with_index and not self.short:
                names.insert(0, '""' if self.quotes and not self.index_name else self.index_name)
            if self.sep == " " and "" in names:
                names = ['""' if name == "" else name for name in names]
            lines.append(self.sep.join(names))
        for i, row in enumerate(self.numbers):
            texts = [self.quoted(self.text_of(x)) if self.sep == "," and self.decimal == "," else
                     self.text_of(x) for x in row]
            lines.append(self.sep.join(([self.index_of(i)] if with_index else []) + texts))
        end = "\r\n" if self.kind == "Excel" or self.rng.random() < 0.1 else "\n"
        mark = "\ufeff" if self.kind == "Excel" and self.rng.random() < 0.6 else ""
        first = f"sep={self.sep}" + end if self.kind == "Excel" and self.rng.random() < 0.2 else ""
        self.has_sep_line = bool(first)
        self.text = mark + first + end.join(lines) + (end if self.rng.random() < 0.9 else "")

    def meant(self):
        """Names and numbers of all columns of the file, in order; the index is None."""
        columns = [(name, [row[j] for row in self.numbers]) for j, name in enumerate(self.names)]
        if not self.header:
            columns = [("", numbers) for _, numbers in columns]
        if self.index == "none":
            return columns
        numbers = [float(i + (self.kind == "R")) for i in range(self.rows)]
        return [(self.index_name, numbers if self.index == "number" else None)] + columns

    def by_pandas(self, path):
        """The numbers as pandas reads them, where it is told all that is meant."""
        frame = pandas.read_csv(
            path, sep=self.sep, decimal=self.decimal, skiprows=1 if self.has_sep_line else 0,
            header=0 if self.header else None, encoding="utf-8-sig", skip_blank_lines=False,
            index_col=0 if self.index != "none" and not self.short else None,
            float_precision="round_trip")
        return frame.to_numpy(dtype=float).tolist()


def equal(one, other):
    if len(one) != len(other):
        return False
    for a, b in zip(one, other):
        if len(a) != len(b) or any((x is None or math.isnan(x)) != (y is None or math.isnan(y)) or (
                x is not None and y is not None and not math.isnan(x) and x != y)
                                   for x, y in zip(a, b)):
            return False
    return True


class Question:
    """A table, and how it is read: which columns, and what they are for."""

    def __init__(self, table, path, rng):
        self.table, self.columns = table, table.meant()
        self.asked = {"file": str(path), "csv": {}}
        self.says = rng.random() < 0.5
        if self.says and table.header:
            self.asked["csv"]["csv_header"] = "yes"
        # What the tool leaves out, and pandas where it is told so: an index without a name, or
        # of words.
        self.read = list(range(len(self.columns)))
        self.is_clear = table.is_clear
        if table.index != "none" and not (table.index == "number" and table.index_name):
            self.read = self.read[1:]
            if table.index_name or (table.index != "none" and rng.random() < 0.3):
                self.asked["csv"]["csv_index_column"] = "yes"
        if rng.random() < 0.4:
            self.choose_columns(rng)
        if rng.random() < 0.4:
            first = rng.randint(0, len(self.read) - 1)
            self.asked["file"] += f":[:,{first}:]"
            self.read = self.read[first:]
        self.response = self.weights = None
        if rng.random() < 0.6:
            self.choose_roles(rng)

    def item(self, column, rng):
        name = self.columns[column][0]
        if name and "," not in name and rng.random() < 0.6:
            return name
        return str(column + 1)

    def choose_columns(self, rng):
        chosen = sorted(rng.sample(self.read, rng.randint(1, len(self.read))))
        if rng.random() < 0.3:
            rng.shuffle(chosen)
        self.asked["csv"]["csv_columns"] = ",".join(self.item(c, rng) for c in chosen)
        self.asked["csv"].pop("csv_index_column", None)
        self.read = chosen

    def choose_roles(self, rng):
        # Now and then a column that is not read.
        of = range(len(self.columns)) if rng.random() < 0.15 else self.read
        self.response = rng.choice(list(of))
        self.asked["response"] = self.item(self.response, rng)
        if rng.random() < 0.4:
            self.weights = rng.choice(list(of))
            self.asked["weights"] = self.item(self.weights, rng)

    def wanted(self):
        """Names, A, b and w; None where only a refusal is right."""
        roles = {self.response, self.weights} - {None}
        if not roles <= set(self.read) or (
                self.response is not None and self.response == self.weights):
            return None
        rest = [c for c in self.read if c not in roles]
        if not rest or any(self.columns[c][1] is None for c in self.read):
            return None
        rows = range(self.table.rows)

        def of(columns):
            return [[self.columns[c][1][i] for c in columns] for i in rows]
        return ([self.columns[c][0] for c in rest], of(rest),
                None if self.response is None else of([self.response]),
                None if self.weights is None else of([self.weights]))

    def judge(self, found):
        wanted = self.wanted()
        if "error" in found:
            is_named = any(text in found["error"] for text in
                           ("separate thousands?", "holds no number in any line"))
            may_be = wanted is None or not self.is_clear or is_named
            return "refused" if may_be else "refused although clear"
        notes = " ".join(found["notes"])
        # Without options a header of numbers may be a row, and a comma a decimal sign.
        said = ("--index-column no reads it", "holds no number and is",
                "if the comma is a decimal sign")
        is_noted = any(text in notes for text in said) or ("--header" in notes and not self.says)
        # One name of two words above an index and a column, or two names.
        is_noted |= not self.is_clear and "--index-column yes leaves it out" in notes
        if wanted is None:
            return "doubt noted" if is_noted else "wrong: should be refused"
        names, a, b, w = wanted
        same = equal(found["a"], a) and (b is None or equal(found["b"], b)) and (
            (w is None) == (found.get("w") is None)) and (w is None or equal(found["w"], w))
        if self.response is None:
            same = same and (found["names"] == (names if self.table.header else []))
        else:  # a label tells columns apart
            same = same and all(f.startswith(n) if n else f.startswith("column ")
                                for f, n in zip(found["names"], names))
        if same:
            return "same"
        return "doubt noted" if is_noted else "wrong"


def judge_by_r(tables):
    """How many tables of R are read by R as they are meant."""
    tables = [(path, t) for path, t in tables if t.kind == "R" and t.header]
    if not tables or shutil.which("Rscript") is None:
        return None
    code = ['options(digits=17)']
    for path, t in tables:
        rows = ", row.names=1" if t.index != "none" and not t.short else ""
        code.append(f'd <- read.table("{path}", header=TRUE, '
                    f'sep="{t.sep if t.sep != " " else ""}", dec="{t.decimal}", check.names=FALSE, '
                    f'na.strings=c("NA","","NaN","nan","#N/A"), comment.char="", '
                    f'encoding="UTF-8"{rows})\n'
                    'cat(paste(sprintf("%.17g", as.numeric(t(as.matrix(d)))), collapse=","), '
                    '"\\n")')
    script = tables[0][0].parent / "read.R"
    script.write_text("\n".join(code), encoding="utf-8")
    lines = subprocess.run(["Rscript", "--vanilla", str(script)], capture_output=True, text=True,
                           check=False, timeout=600)
    if lines.returncode != 0:
        sys.exit(f"R: {lines.stderr}")
    lines = lines.stdout.splitlines()
    for (path, t), line in zip(tables, lines, strict=True):
        found = [math.nan if x in ("NA", "NaN") else float(x) for x in line.strip().split(",")]
        meant = [x for row in t.numbers for x in row]
        # R rounds some decimals by one bit.
        assert all(math.isnan(a) and math.isnan(b) or abs(a - b) <= 1e-15 * abs(b)
                   for a, b in zip(found, meant, strict=True)), (path, t.text, found)
    return len(tables)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader")
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qrtool-tables-") as folder:
        os.environ["LC_ALL"] = "C.UTF-8"
        tables, questions = [], []
        for i in range(args.tables):
            rng = random.Random(args.seed * 1000003 + i)
            table = Table(rng)
            path = pathlib.Path(folder) / f"t{i}.csv"
            path.write_text(table.text, encoding="utf-8", newline="")
            tables.append((path, table))
            questions.append(Question(table, path, rng))
            if not equal(table.by_pandas(path), table.numbers):
                sys.exit(f"pandas reads other numbers: {table.text}")
        by_r = judge_by_r(tables)
        done = subprocess.run([args.reader], capture_output=True, text=True, check=False,
                              timeout=3000,
                              input="".join(json.dumps(q.asked) + "\n" for q in questions))
        if done.returncode != 0:
            at = questions[len(done.stdout.splitlines())]
            sys.exit(f"the reader ends with {done.returncode}: {at.asked}\n{at.table.text}")
        counts, bad = collections.Counter(), []
        for question, line in zip(questions, done.stdout.splitlines(), strict=True):
            found = json.loads(line)
            verdict = question.judge(found)
            counts[verdict] += 1
            if verdict.startswith("wrong") or verdict == "refused although clear":
                bad.append((verdict, question, found))
        print(f"{args.tables} tables, {by_r} of them read by R: {dict(counts)}")
        for verdict, question, found in bad[:10]:
            print(f"\n{verdict}\n{question.table.text}\n{question.asked}\n"
                  f"meant {question.wanted()}\nfound {found}")
        sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
