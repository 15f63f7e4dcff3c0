#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every hint of append and of --state leads on: a wrong use is refused, the hint is followed, and
the command runs."""
import re
import sys
import unittest

import numpy

from tool import FOLLOWED, FolderTest, hint_of, run


class AppendHints(FolderTest):
    def setUp(self):
        super().setUp()
        random = numpy.random.default_rng(72)
        for name, shape in (("a", (30, 3)), ("b", (30, 1)), ("two", (30, 2)), ("wide", (30, 4)),
                            ("all_a", (60, 3)), ("all_b", (60, 1))):
            numpy.save(name + ".npy", random.standard_normal(shape))
        numpy.savetxt("t.csv", random.standard_normal((30, 3)), delimiter=",", header="t,u,y",
                      comments="")
        numpy.savetxt("v.csv", random.standard_normal((30, 4)), delimiter=",", header="t,u,v,y",
                      comments="")
        run("solve", "a.npy", "b.npy", "s.h5", "--state")
        run("solve", "t.csv", "c.h5", "--response", "y", "--state")

    def refused(self, *args, status=2):
        hint = hint_of(run(*args, status=status).stderr)
        self.assertTrue(hint, args)
        FOLLOWED.add(hint)
        return hint

    def test_states(self):
        hint = self.refused("solve", "a.npy", "b.npy", "x.npz", "--state")
        run("solve", "a.npy", "b.npy", "x" + re.search(r"\.h5", hint)[0], "--state")
        hint = self.refused("solve", "a.npy", "two.npy", "x.h5", "-f", "--state",
                            "--missing", "skip")
        self.assertIn("without --state", hint)
        run("solve", "a.npy", "two.npy", "x.h5", "-f", "--missing", "skip")
        hint = self.refused("append", "x.h5", "a.npy", "b.npy", "y.h5", status=3)
        run("solve", "a.npy", "b.npy", "x.h5", "-f", *re.findall("--state", hint))
        run("append", "x.h5", "a.npy", "b.npy", "y.h5")
        run("factor", "a.npy", "q.h5")
        hint = self.refused("append", "q.h5", "a.npy", "r.h5")
        run(*re.search("factor --mode r", hint)[0].split(), "a.npy", "q.h5", "-f")
        run("append", "q.h5", "a.npy", "r.h5")

    def test_which_files(self):
        hint = self.refused("append", "s.h5", "a.npy")
        self.assertIn("STATE A B OUT", hint)
        hint = self.refused("append", "s.h5", "a.npy", "y.h5")
        words = {"A": "a.npy", "B": "b.npy", "TABLE": "t.csv", "OUT": "y.h5", "R": "r.h5",
                 "NEW": "a.npy"}
        follow = lambda text: run(*[words.get(word, word) for word in text.split()[1:]], "-f")
        follow(hint)
        follow(self.refused("append", "c.h5", "a.npy", "b.npy", "y.h5", "-f"))
        run("factor", "a.npy", "r.h5", "--mode", "r")
        hint = self.refused("append", "r.h5", "a.npy", "b.npy", "y.h5", "-f")
        follow(hint.split(";")[0])
        run("solve", "a.npy", "b.npy", "s.h5", "-f", *re.findall("--state", hint))

    def test_which_columns(self):
        hint = self.refused("append", "c.h5", "v.csv", "y.h5", status=3)
        run("append", "c.h5", "v.csv", "y.h5", re.search("--columns", hint)[0], "t,u,y")
        run("factor", "a.npy", "r.h5", "--mode", "r")
        hint = self.refused("append", "r.h5", "wide.npy", "y.h5", "-f", status=3)
        self.assertIn("the same columns", hint)
        run("append", "r.h5", "a.npy", "y.h5", "-f")

    def test_verify(self):
        run("append", "s.h5", "a.npy", "b.npy", "y.h5")
        hint = self.refused("verify", "a.npy", "b.npy", "y.h5")
        self.assertIn("all rows, in one file of another name", hint)
        for name in "ab":
            numpy.save(f"all_{name}.npy", numpy.concatenate([numpy.load(name + ".npy")] * 2))
        run("verify", "all_a.npy", "all_b.npy", "y.h5")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
