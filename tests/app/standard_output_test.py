#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""OUT - writes R alone to standard output, whole or not at all, and everything else elsewhere."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

QRTOOL = sys.argv[1]


class StandardOutput(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="qrtool-stdout-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.a = self.path("a.csv")
        self.array = np.random.default_rng(3).standard_normal((6, 3))
        np.savetxt(self.a, self.array, delimiter=",")

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tool(self, *args, status=0, stdout=subprocess.PIPE, stdin=None):
        done = subprocess.run([QRTOOL, *args], stdout=stdout, stderr=subprocess.PIPE, text=True,
                              timeout=60,
                              check=False, input=stdin)
        self.assertEqual(done.returncode, status, (args, done.stdout, done.stderr))
        return done

    def test_r_goes_through_a_pipe(self):
        with open(self.a, encoding="ascii") as file:
            done = self.run_tool("factor", "-", "-", "--mode", "r", "--sign", "lapack",
                                 stdin=file.read())
        r = np.array([[float(x) for x in line.split(",")] for line in done.stdout.splitlines()])
        np.testing.assert_allclose(r, np.linalg.qr(self.array)[1], atol=1e-13)
        self.assertIn("the matrix passes; wrote R to standard output", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["a.csv"])

    def test_what_is_written_is_verified(self):
        with open(self.path("q.R.csv"), "w", encoding="ascii") as file:
            self.run_tool("factor", self.a, "-", "--mode", "r", "--quiet", stdout=file)
        self.assertIn("the matrix passes",
                      self.run_tool("verify", self.a, self.path("q.csv")).stdout)

    def test_the_report_and_the_verdict_stay(self):
        self.array[2, 1] = np.nan
        np.savetxt(self.a, self.array, delimiter=",")
        done = self.run_tool("factor", self.a, "-", "--mode", "r", "--report", self.path("r.json"),
                             "--json", status=1)
        self.assertEqual(done.stdout, "nan,nan,nan\n" * 3)
        self.assertEqual(json.loads(done.stderr[done.stderr.index("{"):])["schema"],
                         "qrtool.factor/1")
        with open(self.path("r.json"), encoding="ascii") as file:
            self.assertEqual(json.load(file)["matrices"][0]["status"], 2)

    def test_nothing_is_written_by_a_run_that_fails(self):
        with open(self.a, "a", encoding="ascii") as file:
            file.write("1,2\n")
        self.assertEqual(self.run_tool("factor", self.a, "-", "--mode", "r", status=3).stdout, "")

    def test_a_full_standard_output_is_an_error(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = self.run_tool("factor", self.a, "-", "--mode", "r", "--report",
                                 self.path("r.csv"), status=5,
                                 stdout=full)
        self.assertIn("cannot write to standard output: No space left on device", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["a.csv"])

    def test_mistakes(self):
        self.assertIn("give --mode r", self.run_tool("factor", self.a, "-", status=2).stderr)
        with open(self.a, "a", encoding="ascii") as same:
            done = self.run_tool("factor", self.a, "-", "--mode", "r", status=2, stdout=same)
        self.assertIn("input and output are the same file", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
