#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes of people who know other programs: the message says what is wrong, and the hint
what to do."""
import dataclasses
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

QRTOOL = os.path.abspath(sys.argv[1])
TABLE = b"a,b,y\n1,2.5,3\n2,3,5\n3,5,1\n4,1,2\n"


@dataclasses.dataclass
class Mistake:
    """A command that is refused: what is said, and the hint. `follow` turns the command into the
    one that the hint means, and this one succeeds."""
    command: str
    code: int
    message: str
    hint: str
    file: str = "x.csv"
    content: bytes = TABLE
    follow: tuple = ()  # (pattern, replacement) of the command


MISTAKES = [
    Mistake("factor x.mat o.h5", 3, "MAT-file of version 5 to 7", "in Octave by save -hdf5",
            "x.mat", b"MATLAB 5.0 MAT-file, Platform: GLNXA64" + b" " * 90),
    Mistake("factor x.parquet o.h5", 3, "a Parquet file", "numpy.save('a.npy', frame.to_numpy",
            "x.parquet", b"PAR1\x15\x04\x15\x10" * 8),
    Mistake("factor x.feather o.h5", 3, "a Feather file", "numpy.save('a.npy', frame.to_numpy",
            "x.feather", b"ARROW1\0\0\xff\xff\xff\xff\x78\x01" * 4),
    Mistake("factor x.pkl o.h5", 3, "a pickle of Python", "numpy.save('a.npy', array)", "x.pkl",
            b"\x80\x04\x95\x10\0\0\0\0\0\0\0" * 4),
    Mistake("solve x.tab o.csv --response y", 3, "--response is for tables in CSV",
            "let the name end in .csv, .tsv or .txt", "x.tab", follow=(r"x\.tab", "x.csv")),
    Mistake("bench --shape 64", 2, "'64' is not a shape; allowed is MxN", ""),
    Mistake("generate --shape 64 o.h5", 2, "'64' is not a shape; allowed are MxN and BxMxN", ""),
    Mistake("solve x.csv o.csv --response y --residuals", 2, "there is no option '--residuals'",
            "in NumPy b - a @ x", follow=(" --residuals", "")),
    Mistake("solve x.csv o.csv --response y --dummies", 2, "there is no option '--dummies'",
            "a column of 0 and 1 for each category", follow=(" --dummies", "")),
    Mistake("solve x.csv o.csv --response y --by=a", 2, "there is no option '--by'",
            "run solve once for each", follow=(" --by=a", "")),
    Mistake("solve - - o.csv", 2, "cannot be standard input together", "name files"),
    Mistake("factor x.csv o.h5.gz", 2, ".gz files cannot be written", "write o.h5",
            follow=(r"o\.h5\.gz", "o.h5")),
    Mistake("factor x.csv o.csv.gz", 2, ".gz files cannot be written", "write o.csv",
            follow=(r"o\.csv\.gz", "o.csv")),
    Mistake("factor x.csv o.pkl", 2, ".pkl files cannot be written", "write o.h5 ",
            follow=(r"o\.pkl", "o.h5")),
    Mistake("factor x.csv none/", 5, "there is no such directory", "name a file in a directory",
            follow=("none/", "o.h5")),
    Mistake("factor x.csv there.h5 --device H200x", 4, "H200x", "devices", follow=(
        "there.h5 --device H200x", "o.h5")),
    Mistake("solve x.csv there.h5 --response y --device H200x", 4, "H200x", "devices", follow=(
        "there.h5 (.*) --device H200x", r"o.csv \1")),
]


def run(command):
    return subprocess.run([QRTOOL, *shlex.split(command)], capture_output=True, text=True,
                          check=False, timeout=120, stdin=subprocess.DEVNULL)


class Messages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="qrtool-messages-")
        self.addCleanup(folder.cleanup)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(folder.name)

    def make(self, mistake):
        for old in pathlib.Path(".").iterdir():
            old.unlink()
        for name in {"x.csv", "there.h5", mistake.file}:
            pathlib.Path(name).write_bytes(TABLE)
        pathlib.Path(mistake.file).write_bytes(mistake.content)

    def test_what_is_said_leads_on(self):
        for mistake in MISTAKES:
            with self.subTest(mistake.command):
                self.make(mistake)
                refused = run(mistake.command)
                self.assertEqual(refused.returncode, mistake.code, refused)
                message, _, hint = refused.stderr.partition("\nhint: ")
                self.assertIn(mistake.message, message)
                self.assertIn(mistake.hint, hint)
                if mistake.follow:
                    done = run(re.sub(*mistake.follow, mistake.command))
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_log_that_cannot_be_written_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        pathlib.Path("x.csv").write_bytes(TABLE)
        os.symlink("/dev/full", "full.log")
        done = run("factor x.csv o.h5 --log full.log")
        self.assertEqual(done.returncode, 5, done)
        self.assertIn("cannot write the log 'full.log': No space left on device", done.stderr)
        self.assertFalse(os.path.exists("o.h5"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
