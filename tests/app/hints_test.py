#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every hint leads on: a file provokes the message, what the hint says is done, and then the tool
runs, or refuses for another reason that is named here.

A case is a Hint: the files, the command, a part of the message, and the options or the command
that follow from the hint. They are taken out of the hint's text, so that a hint that changes is
followed as it stands."""
import dataclasses
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

from tool import QRTOOL, FolderTest



@dataclasses.dataclass
class Hint:
    text: str  # the file x.csv
    message: str  # a part of what is refused
    follow: str  # what the hint says: a regular expression, whose group 1 is added to the command
    command: str = "factor x.csv - --mode r"
    instead: str = ""  # the part of the command that is replaced by group 1; empty: it is appended
    then: str = ""  # a part of the refusal that comes then; empty: the command succeeds
    standard_input: bool = False
    shape: str = ""  # of what is read then, as info says it


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
    Hint("1,b\n", "'b' is not a number", r"(--header yes)", then="holds no numbers"),
    Hint("date,a\n2020-01-01,1\n2020-01-02,2.5\n", "'2020-01-01'", r"(--index-column yes)",
         shape="2x1"),
    Hint("n,c,b\n1,AT,4\n2,CH,5\n", "'AT' is not a number", r"(--columns \S+)", shape="2x2"),
    Hint("n,ok,b\n1,True,4\n2,False,5\n", "'True'", r"(--columns \S+)", shape="2x2"),
    Hint("a,b\nc,d\n1,2\n", "'c' is not a number", r"(--skip-rows \d+)", shape="1x2"),
    Hint("1,--\n2,3\n", "'--'", r"(--na-text \S+)", then="NaN"),
    Hint("1,-\n2,3\n", "'-'", r"(--na-text \S+)", then="NaN"),
    Hint("1|2\n3|4\n", "'1|2'", r"(--delimiter pipe)", shape="2x2"),
    Hint("1.5;2\n2,5;1\n", "'2,5'", r"(--decimal comma)", then="the decimal sign of this file is"),
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
    Hint("1,2\n3,4\n", "no header", r"(--columns 1)$", "factor x.csv - --mode r --columns b",
         instead="--columns b", shape="2x1"),
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
]


def run(command, text=None):
    # A slice would be a pattern for a shell; there is none.
    return subprocess.run([QRTOOL, *shlex.split(command)], capture_output=True, text=True,
                          check=False, timeout=120, input=text)


class Hints(FolderTest):
    def follow(self, hint):
        pathlib.Path("x.csv").write_text(hint.text, encoding="utf-8", newline="")
        text = hint.text if hint.standard_input else None
        refused = run(hint.command, text)
        self.assertIn(refused.returncode, (2, 3), refused)
        self.assertIn(hint.message, refused.stderr)
        said = refused.stderr.split("hint: ", 1)[1].strip()
        found = re.search(hint.follow, said)
        self.assertIsNotNone(found, said)
        options = found.group(1) or found.group(2)
        if not hint.instead:
            command = hint.command + " " + options
        elif "[" in hint.instead:
            command = hint.command.replace(hint.instead, hint.instead.split(":")[0]) + " " + options
        else:
            command = hint.command.replace(hint.instead, options)
        done = run(command, text)
        if hint.then:
            self.assertIn(hint.then, done.stderr, command)
        else:
            self.assertEqual(done.returncode, 0, (command, done.stderr))
        if hint.shape:
            self.assertIn(f"of {hint.shape} ", done.stderr, command)

    def test_every_hint_leads_on(self):
        for hint in HINTS:
            with self.subTest(text=hint.text, command=hint.command):
                self.follow(hint)
                for output in pathlib.Path(".").glob("o.*"):
                    output.unlink()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
