#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every hint of apply leads on: a wrong use is refused, the hint is followed, and apply runs."""
import re
import sys
import unittest

import h5py
import numpy

from tool import FOLLOWED, FolderTest, hint_of, run


class ApplyHints(FolderTest):
    def setUp(self):
        super().setUp()
        random = numpy.random.default_rng(71)
        self.a = random.standard_normal((7, 4))
        numpy.save("a.npy", self.a)
        numpy.save("wide.npy", self.a.T)
        numpy.save("b.npy", random.standard_normal((7, 2)))
        numpy.save("k.npy", random.standard_normal((4, 2)))
        numpy.save("square.npy", random.standard_normal((7, 7)))
        numpy.save("z.npy", random.standard_normal((7, 2)) + 1j)
        numpy.save("za.npy", self.a + 1j)
        run("factor", "a.npy", "q.npz")
        run("factor", "za.npy", "zq.npz")
        run("factor", "a.npy", "r.npz", "--mode", "r")

    def refused(self, *args, status=3):
        hint = hint_of(run(*args, *(["-f"] if args[0] == "apply" else []), status=status).stderr)
        self.assertTrue(hint, args)
        FOLLOWED.add(hint)
        return hint

    def apply(self, factors, b, *options):
        run("apply", factors, b, "x.npz", "-f", *options)

    def test_which_factors(self):
        hint = self.refused("apply", "b.npy", "q.npz", "x.npz")
        run(*re.search("qrtool (apply .*)", hint)[1].split())
        hint = self.refused("apply", "r.npz", "b.npy", "x.npz")
        run("factor", "a.npy", "r.npz", "-f", *re.search("(--mode reduced)", hint)[1].split())
        self.apply("r.npz", "b.npy")
        run("factor", "a.npy", "c.npz", "--mode", "complete")
        hint = self.refused("apply", "c.npz", "k.npy", "x.npz", "--with", "rinv")
        run("factor", "a.npy", "c.npz", "-f", *re.search("(--mode reduced)", hint)[1].split())
        self.apply("c.npz", "k.npy", "--with", "rinv")
        run("factor", "wide.npy", "w.npz")
        hint = self.refused("apply", "w.npz", "k.npy", "x.npz", "--with", "rinv")
        self.assertIn("qrtool solve A B OUT", hint)
        run("solve", "wide.npy", "k.npy", "x.npz", "-f")
        with h5py.File("a.h5", "w") as file:
            file["A"], file["B"] = self.a, self.a
        run("factor", "a.h5", "f.h5", "--dataset", "/A", "--dataset", "/B")
        self.apply(re.search(r"(f\.h5:\S+)", self.refused("apply", "f.h5", "b.npy", "x.npz"))[1],
                   "b.npy")
        run("factor", "a.npy", "p.npz", "--pivot")
        with numpy.load("p.npz") as file:
            factors = dict(file)
        numpy.savez("p.npz", Q=factors["Q"], R=factors["R"], P=factors["P"] + 1)
        self.assertIn("from 0", self.refused("apply", "p.npz", "k.npy", "x.npz", "--with", "rinv"))
        numpy.savez("p.npz", Q=factors["Q"], R=factors["R"], P=factors["P"])
        self.apply("p.npz", "k.npy", "--with", "rinv")

    def test_which_right_sides(self):
        hint = self.refused("apply", "q.npz", "k.npy", "x.npz")
        numpy.save("k.npy", numpy.ones((int(re.search("dimension of ([0-9]+)", hint)[1]), 3)))
        self.apply("q.npz", "k.npy")
        hint = self.refused("apply", "q.npz", "square.npy", "x.npz", status=2)
        self.apply("q.npz", "square.npy", *re.search("(--rows last)", hint)[1].split())
        self.assertIn("the real and to the imaginary part",
                      self.refused("apply", "q.npz", "z.npy", "x.npz"))
        for part in (numpy.load("z.npy").real, numpy.load("z.npy").imag):
            numpy.save("part.npy", part)
            self.apply("q.npz", "part.npy")
        hint = self.refused("apply", "zq.npz", "b.npy", "x.npz")
        b = numpy.load("b.npy")  # pylint: disable=unused-variable
        numpy.save("b.npy", eval(re.search(r"(b\.astype\(complex\))", hint)[1]))
        self.apply("zq.npz", "b.npy")

    def test_verify(self):
        self.apply("q.npz", "b.npy")
        self.assertIn("an output of factor",
                      self.refused("verify", "a.npy", "x.npz", status=2))
        run("verify", "a.npy", "q.npz")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
