#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every hint leads on: a file provokes the message, what the hint says is done, and then the tool
runs, or refuses for another reason that is named here.

A case is a Hint: the files, the command, a part of the message, and the options, the command or the
change of the file that follow from the hint. They are taken out of the hint's text, so that a hint
that changes is followed as it stands."""
import csv
import dataclasses
import gzip
import io
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

import h5py
import numpy

from tool import FOLLOWED, QRTOOL, FolderTest, hint_of


@dataclasses.dataclass
class Hint:
    text: str | bytes  # the file x.csv
    message: str  # a part of what is refused
    follow: str  # what the hint says: a regular expression, whose group 1 is added to the command
    command: str = "factor x.csv - --mode r"
    instead: str = ""  # the part of the command that is replaced by group 1; empty: it is appended
    then: str = ""  # a part of the refusal that comes then; empty: the command succeeds
    standard_input: bool = False
    shape: str = ""  # of what is read then, as info says it
    edit: str = ""  # a part of the file, which group 1 replaces
    by: str | None = None  # what replaces it instead, where the hint says it in words
    shell: bool = False  # group 1 is a command of the shell; `becomes` is run after it
    becomes: str = ""  # the command that is run then, whatever group 1 is
    reads: list | None = None  # the numbers that are read then; for solve [A, b]


TABLE = "a,b,y\n1,2.5,3\n2,3,5\n3,5,1\n4,1,2\n"
NAMED = "country,2018,2019\nAT,1.5,2\nCL,4,5\nKE,7,8\n"

HINTS = [
    Hint(NAMED, "names and whole numbers", r"holds names: (.*?);", shape="3x2"),
    Hint("AT,1,2\nCL,4,5\nKE,7,8.5\n", "names and whole numbers", r"it is a row: (.*)",
         shape="3x2"),
    Hint(NAMED, "names and whole numbers", r"holds names: (.*?);", "factor x.csv - --mode r "
         "--columns 2-3", shape="3x2"),
    Hint(",2019,2020\n1,2.5,3\n2,3,5\n", "an empty field", r"(--header yes)", shape="2x2"),
    Hint(",2019,2020\n1,2.5,3\n2,3,5\n", "an empty field", r"(--header no)", then="NaN"),
    Hint("0,1\n0.5,0.25\n", "0 and 1", r"(--header yes)", shape="1x2"),
    Hint("0,1\n0.5,0.25\n", "0 and 1", r"(--header no)", shape="2x2"),
    Hint("b,1\n", "'b' is not a number", r"(--index-column yes)", shape="1x1"),
    Hint("7,8\na,b\n1,2\n3,5\n", "no header with a column 'b'", r"(--names-row 2)",
         "solve x.csv o.csv --response b --a a", reads=[[1, 2], [3, 5]]),
    Hint("n,a,b\nA,low,?\nB,1,2\nC,3,5\n", "'low' is not a number", r"(--names-row 1)",
         "factor x.csv - --mode r --columns a,b", reads=[[1, 2], [3, 5]]),
    Hint("a,b\n1,2\n3,5\nSource\n", "'Source' is not a number", r"(--end-row 3)",
         reads=[[1, 2], [3, 5]]),
    Hint("a,b\n1,2\n3,5\nc,d\n7,8\n", "'c' is not a number", r"(--end-row 3)",
         reads=[[1, 2], [3, 5]]),
    Hint("a;b\n1.234,5;2\n3;5\n", "'1.234,5'", r"(--thousands point)",
         reads=[[1234.5, 2], [3, 5]]),
    Hint("1,234;5\n7,891;6\n", "separate thousands?", r"(--thousands comma)",
         reads=[[1234, 5], [7891, 6]]),
    Hint(21 * "1,2,\n3,5,\n" + "7,8,9\n", "which is empty in the first rows", r"(--columns 1-3)",
         then="NaN"),
    Hint("a,b\n1,2\n3,5\n", "holds no numbers up to line 1", r"--end-row (names)",
         "factor x.csv - --mode r --end-row 1", instead="--end-row 1", becomes="factor x.csv - "
         "--mode r --end-row 3", reads=[[1, 2], [3, 5]]),
    Hint("a,b\n1,2\n3,5\n", "there are 3 lines", r"(leave it away)",
         "factor x.csv - --mode r --end-row 9", becomes="factor x.csv - --mode r",
         reads=[[1, 2], [3, 5]]),
    Hint("n;x;y\nNr. 1;1,5;2\nNr. 2;2,5;3\nNr. 3;3,0;4,5\n", "'Nr. 1'", r"(--index-column yes)",
         "solve x.csv o.csv --response y", reads=[[1.5, 2], [2.5, 3], [3, 4.5]]),
    Hint("x;n;c;y\n1,5;Nr. 1;a;2\n2,5;Nr. 2;b;3\n3,0;Nr. 3;c;4,5\n", "'Nr. 1'",
         r"leave the columns 'n', 'c' out: (--columns x,y)",
         "solve x.csv o.csv --response y", reads=[[1.5, 2], [2.5, 3], [3, 4.5]]),
    Hint("n,x,y\na,1,2\nb,2,***\nc,4,3\nd,5,5\n", "'a'", r"(--index-column yes)",
         "solve x.csv o.csv --response y", then="'***' is not a number"),
    Hint("x,y\n1,2\n2,***\n4,3\n", "'***'", r"missing here: (.*)",
         "solve x.csv o.csv --response y --missing skip", reads=[[1, 2], [4, 3]]),
    Hint("1,\u22122\n3,4\n", "is not a number", r"ASCII: (-2)", edit="\u22122",
         reads=[[1, -2], [3, 4]]),
    Hint("x,y\n1,(9.5)\n2,3\n", "'(9.5)'", r"write (-9.5)", edit="(9.5)",
         reads=[[1, -9.5], [2, 3]]),
    Hint("1,2\n$1.5,3\n", "'$1.5'", r"currency: (1.5)", edit="$1.5", reads=[[1, 2], [1.5, 3]]),
    Hint("1,2 # two\n3,4\n", "'2 # two'", r"start of a line; write (2)", edit="2 # two",
         reads=[[1, 2], [3, 4]]),
    Hint("a b #c\n1 2 3\n4 5 9\n", "before its comment", r"(in quotes)", edit="#c", by='"#c"',
         reads=[[1, 2, 3], [4, 5, 9]]),
    Hint("1,2\r3,4\r", "CR alone", r"(tr .*)", shell=True, becomes="factor new.csv - --mode r",
         reads=[[1, 2], [3, 4]]),
    Hint("n,ok,b\n1,True,4\n2,False,6\n", "'True'", r"write (1) and 0", edit="True",
         by="1", then="'False' is not a number"),
    Hint("1.5,b\n" + 20 * "2,NA\n" + "4,5\n", "'b' is not a number", r"(--header yes)",
         then="their R is NaN"),
    Hint("date,a\n2020-01-01,1\n2020-01-02,2.5\n", "'2020-01-01'", r"(--index-column yes)",
         shape="2x1"),
    Hint("n,c,b\n1,AT,4\n2,CH,5\n", "'AT' is not a number", r"(--columns \S+)", shape="2x2"),
    Hint("n,ok,b\n1,True,4\n2,False,5\n", "'True'", r"(--columns \S+)", shape="2x2"),
    Hint("1,--\n2,3\n", "'--'", r"(--na-text \S+)", then="NaN"),
    Hint("1,-\n2,3\n", "'-'", r"(--na-text \S+)", then="NaN"),
    Hint("1|2\n3|4\n", "'1|2'", r"(--delimiter pipe)", shape="2x2"),
    Hint("1.5;2\n2,5;1\n", "'2,5'", r"the point is .*; write (\S+)", edit="2,5",
         reads=[[1.5, 2], [2.5, 1]]),
    Hint("1,5 2,5\n2,5 7,5\n", "'5 2'", r"(--decimal comma)", shape="2x2"),
    Hint("1,234;5\n7,891;6\n", "separate thousands?", r"(--decimal comma)", shape="2x2"),
    Hint("1,,3\n2,,4\n", "holds no number in any line", r"(--columns \S+)", shape="2x2"),
    Hint("a,b\n3,1,2\n7,3,4\n", "does not count the rows", r"(--index-column yes)", shape="2x2"),
    Hint("a,b,c\n1,2\n", "has 3 names", r"(--skip-rows 1)", shape="1x2"),
    Hint("0,1,2\n0,1,2,3\n1,4,5,7\n", "4 columns where", r"(--header yes)", shape="2x3"),
    Hint("x\nra 8,5\nrb 3,25\n", "is the comma a decimal sign", r"if it is: (.*?);", shape="2x1"),
    Hint("x\nra 8,5\nrb 3,25\n", "is the comma a decimal sign", r"separates columns: (.*)",
         shape="2x1"),
    Hint('"" x\n1 8,5\n2 3,25\n', "the header has blanks", r"if it is: (.*?);", shape="2x1"),
    Hint("a b\n1,2\n3,5\n", "the header has blanks", r"separates columns: (.*)", shape="2x2"),
    Hint("life exp\n1\t2\n2\t5\n", "if blanks separate its names", r"is an index: (.*?);",
         shape="2x1"),
    Hint("life exp\n1\t2\n2\t5\n", "if blanks separate its names", r"it is data: (.*)",
         shape="2x2"),
    Hint("3 3 2\n1 1 5\n2 2 6\n", "Matrix Market", r"(--header no)", "factor - - --mode r",
         standard_input=True),
    Hint("%MatrixMarkt matrix array real general\n1 2\n3 5\n7 7\n", "damaged first line",
         r"(--skip-rows 1)", reads=[[1, 2], [3, 5], [7, 7]]),
    Hint("%MatrixMarkt matrix array real general\n2 1\n3\n4\n", "damaged first line",
         r"if not, write (%%\w+) matrix FORMAT FIELD SYMMETRY", edit="%MatrixMarkt",
         reads=[[3], [4]]),
    Hint("a\n1\n", "only column is an index", r"(--index-column no)",
         "factor x.csv - --mode r --index-column yes", instead="--index-column yes", shape="1x1"),
    Hint("g,a,a\n1,2,3\n2,3,5\n", "have the same name", r"(--columns \S+) or",
         "factor x.csv - --mode r --columns a", instead="--columns a", shape="2x1"),
    Hint("g,a,a\n1,2,3\n2,3,5\n", "have the same name", r"or (--columns \S+)",
         "factor x.csv - --mode r --columns a", instead="--columns a", shape="2x1"),
    Hint("a,3,1\n1,2,3\n2,3,5\n", "has this number", r"(--columns \S+) is the one with the number",
         "factor x.csv - --mode r --header yes --columns 1", instead="--columns 1", shape="2x1"),
    Hint("a,3,1\n1,2,3\n2,3,5\n", "has this number", r", (--columns \S+) the one with the name",
         "factor x.csv - --mode r --header yes --columns 1", instead="--columns 1", shape="2x1"),
    Hint("1,2\n3,4\n", "no header", r"the columns are (1) to 2",
         "factor x.csv - --mode r --columns b", instead="b", reads=[[1], [3]]),
    Hint(TABLE, "no column 'a-b'", r"(--columns 1-2)", "factor x.csv - --mode r --columns a-b",
         instead="--columns a-b", shape="4x2"),
    Hint(TABLE, "--columns leaves out y", r"(--columns a,b,y)", "solve x.csv o.csv --columns a,b "
         "--response y", instead="--columns a,b"),
    Hint(TABLE, "the selection of the file leaves out y",
         r"(x.csv --columns a,b,y)|(--columns \S+)",
         "solve x.csv:[:,:2] o.csv --response y", instead="x.csv:[:,:2]"),
    Hint(",a,b\n1,2,3\n2,5,4\n", "is the index", r"(--index-column no)",
         "solve x.csv o.csv --response 1 --header yes"),
    Hint("y\n1\n2\n", "no column is left for A", r"(--intercept)",
         "solve x.csv o.csv --response y"),
    Hint("g,a,a\n1,2,3\n2,3,5\n4,1,2\n", "have the same name", r"(--response \S+) or",
         "solve x.csv o.csv --response a", instead="--response a"),
    Hint("1,2,3,4,5,6,7,8\n9,1,6,3,5,7,4,2\n", "an empty item", r"example (--columns \S+) or",
         "factor x.csv - --mode r --columns 2,,3", instead="--columns 2,,3",
         reads=[[2, 3, 4, 5, 8], [1, 6, 3, 5, 2]]),
    Hint(TABLE, "no column 'z'", r"columns are (\w+), b, y", "factor x.csv - --mode r --columns z",
         instead="z", reads=[[1], [2], [3], [4]]),
    Hint("1,5;2\n1.5;3\n", "'1.5' is not", r"write (\S+)", edit="1.5", reads=[[1.5, 2], [1.5, 3]]),
    Hint("1.5d3,2\n3,4\n", "'1.5d3' is not", r"with e: (\S+)", edit="1.5d3",
         reads=[[1500, 2], [3, 4]]),
    Hint("5%,2\n3,4\n", "'5%' is not", r"(without its percent sign)", edit="5%", by="5",
         reads=[[5, 2], [3, 4]]),
    Hint("1,2,3\n4,5\n7,8,8\n", "2 columns where", r"write (nan)", edit="4,5", by="4,5,nan",
         then="their R is NaN"),
    Hint("a,b\n3,1,2\n7,3,4\n", "does not count the rows", r"(--skip-rows \d+)",
         reads=[[3, 1, 2], [7, 3, 4]]),
    Hint("1,2\n\n3,4\n5,6\n", "matrix 1 has 2 rows", r"remove (line 2)", edit="\n\n", by="\n",
         reads=[[1, 2], [3, 4], [5, 6]]),
    Hint("1,2\n3,4\n".encode("utf-16"), "UTF-16", r"(iconv .*)", shell=True,
         becomes="factor utf8.csv - --mode r", reads=[[1, 2], [3, 4]]),
    Hint("1,2\n3,4\n", "a selection ends with", r"example '(\S+?)'", "factor x.csv:[0 - --mode r",
         becomes="factor x.csv:{} - --mode r", reads=[[1, 2], [3, 4]]),
    Hint("1,2\n3,4\n", "takes dimension 1", r"(\S+) keeps it", "factor x.csv:[:,0] - --mode r",
         becomes="factor x.csv:[:,{}] - --mode r", reads=[[1], [3]]),
    Hint("1,2\n3,4\n", "--raw-values is for", r"leave (--raw-values) away",
         "factor x.csv - --mode r --raw-values", becomes="factor x.csv - --mode r",
         reads=[[1, 2], [3, 4]]),
    Hint("1,2\n3,4\n", "no datasets", r"example '(\S+)'", "factor x.csv:/A - --mode r",
         becomes="factor {} - --mode r", reads=[[1, 2], [3, 4]]),
    Hint("1,2\n3,4\n", "cannot read 'x.csv[0:1]'", r"selection: '(\S+)'",
         "factor x.csv[0:1] - --mode r", becomes="factor {} - --mode r", reads=[[1, 2]]),
    Hint("1,2\n1e39,4\n", "too large for float32", r"use (--precision double)",
         "factor x.csv - --mode r --precision single", instead="--precision single",
         reads=[[1, 2], [1e39, 4]]),
    Hint("2 2\n1\n2\n3\n4\n", "1 column where", r"write (nan)", edit="1\n2\n3\n4", by="1 2\n3 4",
         reads=[[2, 2], [1, 2], [3, 4]]),
    Hint("3 3 2\n1 1 5\n2 2 6\n", "Matrix Market", r"first line is (%%.*)", "factor - - --mode r",
         standard_input=True, edit="3 3 2", by="{}\n3 3 2", then="a sparse matrix"),
    Hint("a,y,w\n1,2,-1\n3,4,1\n3,5,1\n", "weight 0 is -1", r"weight of (0) leaves",
         "solve x.csv o.csv --response y --weights w", edit="-1", reads=[[3, 4], [3, 5]]),
    Hint("a,y,w\n1,2,1\n3,4,1\n3,5,1\n", "both response and weights", r"name (two) columns",
         "solve x.csv o.csv --response y --weights y",
         becomes="solve x.csv o.csv --response y --weights w", reads=[[1, 2], [3, 4], [3, 5]]),
    Hint("a,y,w\n1,2,1\n3,4,1\n3,5,1\n", "neither a column nor a file", r"are .*, (\w+)$",
         "solve x.csv o.csv --response y --weights ww", instead="ww",
         reads=[[1, 2], [3, 4], [3, 5]]),
    Hint("a,y,w\n1,2,1\n3,4,1\n3,5,1\n", "names 2 columns", r"name (one) column",
         "solve x.csv o.csv --response y --weights a,w",
         becomes="solve x.csv o.csv --response y --weights w", reads=[[1, 2], [3, 4], [3, 5]]),
    Hint("a,y\n1,2\n", "--confidence needs more rows", r"leave (--confidence) away",
         "solve x.csv o.csv --response y --confidence 0.95",
         becomes="solve x.csv o.csv --response y", reads=[[1, 2]]),
    Hint("a,y\n1,2\n", "--covariance needs more rows", r"leave (--covariance) away",
         "solve x.csv o.csv --response y --covariance",
         becomes="solve x.csv o.csv --response y", reads=[[1, 2]]),
]


def stored_by(save, *numbers):
    """The bytes that a function writes."""
    to = io.BytesIO()
    save(to, *numbers)
    return to.getvalue()


def save_hdf5(to, numbers):
    with h5py.File(to, "w") as file:
        file["a"] = numbers


SOLVE = "solve x.csv o.csv --response y"
HINTS += [
    Hint(TABLE, "--min-rows is for --window", r"(--window N)", SOLVE + " --min-rows 2",
         becomes=SOLVE + " --min-rows 2 --window 3"),
    Hint(TABLE, "more than the 3 rows of --window", r"give (\d) or fewer",
         SOLVE + " --window 3 --min-rows 4", becomes=SOLVE + " --window 3 --min-rows {}"),
    Hint(TABLE, "fewer rows than the 2 columns", r"give (\d) or more", SOLVE + " --window 1",
         becomes=SOLVE + " --window {}"),
    Hint(TABLE, "--rolling", r"(--window N)", SOLVE + " --rolling 3",
         becomes=SOLVE + " --window 3"),
]

NUMBERS = [[1, 2], [3, 4], [5, 7]]
for save, ending in ((numpy.save, "npy"), (numpy.savez, "npz"), (save_hdf5, "h5")):
    # What a file holds once it is unpacked, whatever its name was.
    HINTS.append(Hint(gzip.compress(stored_by(save, numpy.array(NUMBERS, float))), "not text",
                      r"(gunzip .*)", "factor x.csv.gz - --mode r", shell=True,
                      becomes=f"factor x.csv.{ending} - --mode r", reads=NUMBERS))


def run(command, text=None):
    # A slice would be a pattern for a shell; there is none.
    return subprocess.run([QRTOOL, *shlex.split(command)], capture_output=True, text=True,
                          check=False, timeout=120, input=text)


def read_by(command, out):
    """R of what was factored, or x of what was solved."""
    if command.startswith("solve"):
        with open("o.csv", encoding="utf-8") as file:
            return numpy.array([float(line["x"]) for line in csv.DictReader(file)])
    return numpy.loadtxt(io.StringIO(out), delimiter=",", ndmin=2)


class Hints(FolderTest):
    def write(self, hint, content):
        name = "x.csv.gz" if "x.csv.gz" in hint.command else "x.csv"
        pathlib.Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())

    def followed(self, hint, said):
        """The command, and the content of the file, that follow from what is said."""
        found = re.search(hint.follow, said)
        self.assertIsNotNone(found, said)
        group, content, command = found.group(1) or found.group(2), hint.text, hint.command
        if hint.edit:
            new = group if hint.by is None else hint.by.format(group)
            content = hint.text.replace(hint.edit, new, 1)
        elif hint.shell:
            if not shutil.which(group.split()[0]):
                self.skipTest(group)
            subprocess.run(group, shell=True, check=True)
        elif not hint.instead and not hint.becomes:
            command += " " + group
        elif "[" in hint.instead:
            command = command.replace(hint.instead, hint.instead.split(":")[0]) + " " + group
        elif hint.instead:
            command = command.replace(hint.instead, group)
        return hint.becomes.format(group) or command, content

    def follow(self, hint):
        self.write(hint, hint.text)
        refused = run(hint.command, hint.text if hint.standard_input else None)
        self.assertIn(refused.returncode, (2, 3), refused)
        self.assertIn(hint.message, refused.stderr)
        said = hint_of(refused.stderr)
        command, content = self.followed(hint, said)
        self.write(hint, content)
        done = run(command, content if hint.standard_input else None)
        if hint.then:
            self.assertIn(hint.then, done.stderr, command)
        else:
            self.assertEqual(done.returncode, 0, (command, done.stderr))
        if hint.shape:
            self.assertIn(f"of {hint.shape} ", done.stderr, command)
        if hint.reads is not None:
            self.compare(numpy.array(hint.reads, float), command, done.stdout)
        FOLLOWED.update((said, self.part_of(said, hint.follow)))

    @staticmethod
    def part_of(said, follow):
        """The one of several ways that a case follows."""
        way = re.search(follow, said).group().rstrip(";")
        return next((part for part in said.split("; ") if way in part), said)

    def compare(self, numbers, command, out):
        found = read_by(command, out)
        if command.startswith("solve"):
            wanted = numpy.linalg.lstsq(numbers[:, :-1], numbers[:, -1], rcond=None)[0]
            numpy.testing.assert_allclose(found, wanted, rtol=1e-12)
        else:
            numpy.testing.assert_allclose(found.T @ found, numbers.T @ numbers, rtol=1e-12,
                                          atol=1e-12 * numpy.square(numbers).sum())

    def test_every_hint_leads_on(self):
        for hint in HINTS:
            with self.subTest(text=hint.text[:40], command=hint.command):
                self.follow(hint)
                for output in pathlib.Path(".").glob("o.*"):
                    output.unlink()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
