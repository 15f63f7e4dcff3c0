#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`solve TABLE OUT --response y` writes one table of coefficients, which pandas and R read as it
is, and which agrees with R's summary(lm()). x goes through pipes, as text and as an array of
NumPy."""
import io
import json
import os
import pathlib
import subprocess
import sys
import unittest

import numpy as np
import pandas

from tool import QRTOOL, FolderTest, said

ROOT = pathlib.Path(sys.argv[2])
LONGLEY = str(ROOT / "samples/strd/longley.csv")
R_SUMMARY = """
options(digits = 17)
table <- read.csv(commandArgs(TRUE)[1], check.names = FALSE)
fit <- lm(y ~ ., data = table)
write.csv(cbind(coef(summary(fit)), confint(fit, level = 0.9)), commandArgs(TRUE)[2])
"""
R_READ = """
table <- read.csv(commandArgs(TRUE)[1])
stopifnot(identical(sapply(table, is.numeric),
                    c(term = FALSE, x = TRUE, se = TRUE, t = TRUE, p = TRUE)))
cat(table$term, sep = "\\n")
"""


def run(*args, status=0, text=None, data=None):
    done = subprocess.run([QRTOOL, *args], capture_output=True, timeout=120, check=False,
                          input=data if data is not None else (text or "").encode())
    assert done.returncode == status, (args, done.returncode, done.stdout, done.stderr)
    return done.stdout if data is not None else done.stdout.decode()


def write(name, text):
    pathlib.Path(name).write_text(text, encoding="utf-8")


def r_says(script, *args):
    write("script.R", script)
    done = subprocess.run(["Rscript", "--vanilla", "script.R", *args], capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Coefficients(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(5)

    def compare_with_r(self, table):
        """Relative differences of 1e-10; of p below 1e-10 as well, where the tail is meant."""
        run("solve", table, "o.csv", "-f", "--response", "y", "--intercept", "--confidence", "0.9")
        ours = pandas.read_csv("o.csv")
        self.assertEqual(list(ours.columns), ["term", "x", "se", "t", "p", "lower", "upper"])
        r_says(R_SUMMARY, table, "r.csv")
        theirs = pandas.read_csv("r.csv", index_col=0)
        for name, column in zip(ours.columns[1:], theirs.columns):
            np.testing.assert_allclose(ours[name], theirs[column], rtol=1e-10, err_msg=name)

    def test_r_agrees(self):
        self.compare_with_r(LONGLEY)
        for m, n in ((4, 2), (30, 5), (3000, 3), (12, 10)):
            table = self.random.standard_normal((m, n + 1))
            table[:, 0] *= 1e3
            frame = pandas.DataFrame(table, columns=["y", *[f"v{j}" for j in range(n)]])
            frame.to_csv("t.csv", index=False, float_format="%.17g")
            self.compare_with_r("t.csv")

    def test_the_file_is_a_plain_table(self):
        said = run("solve", LONGLEY, "out.csv", "--response", "y", "--intercept")
        self.assertEqual(sorted(os.listdir()), ["out.csv", "out.report.json"])
        lines = pathlib.Path("out.csv").read_text("utf-8").splitlines()
        self.assertEqual((lines[0], len(lines)), ("term,x,se,t,p", 8))
        self.assertTrue(lines[1].startswith("(intercept),-3482258.6"))
        self.assertIn("residual standard deviation 304.854, 9 degrees of freedom", said)
        self.assertTrue(said.splitlines()[-1].startswith("x6"), said)  # the answer is last
        self.assertIn("passes", run("verify", LONGLEY, "out.csv"))
        self.assertIn("solutions of qrtool", run("info", "out.csv"))
        with open("out.report.json", encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["report"]["rank"]["values"], [7])
        terms = r_says(R_READ, "out.csv").split()
        self.assertEqual(terms, ["(intercept)", "x1", "x2", "x3", "x4", "x5", "x6"])

    def test_verify_knows_what_was_solved(self):
        write("t.csv", "a,b,y,w\n" + "".join(
            f"{i},{i * i % 7},{2 * i + i % 3},{1 + i % 2}\n" for i in range(9)))
        for options in (("--weights", "w"), ("--weights", "4", "--ridge", "2", "--intercept"),
                        ("--columns", "1,3", "--precision", "single"), ("--no-se",)):
            for out in ("o.csv", "o.tsv", "o.txt", "o.h5", "o.npz", "o.npy", "o.mtx"):
                run("solve", "t.csv", out, "-f", "--response", "y", *options)
                self.assertIn("passes", run("verify", "t.csv", out), (options, out))
                self.assertIn("passes", run("verify", "t.csv", out, "--response", "y"))
        # The report of o.npy has the place of that of o.csv.
        run("solve", "t.csv", "o.csv", "-f", "--response", "y", "--no-se")
        text = pathlib.Path("o.csv").read_text("utf-8")
        self.assertEqual(text.splitlines()[0], "term,x")
        write("o.csv", text.replace("a,", "a,1"))
        self.assertIn("not the solutions that o.report.json describes",
                      said("verify", "t.csv", "o.csv", status=3))
        write("w.csv", "1\n" * 9)
        run("solve", "t.csv", "o.csv", "-f", "--response", "y", "--weights", "w.csv")
        run("verify", "t.csv", "o.csv", status=2)
        run("verify", "t.csv", "o.csv", "--weights", "w.csv")

    def test_files_of_other_runs(self):
        """There is one answer under a name: what would contradict it is refused, or removed."""
        write("t.csv", "a,y\n1,2\n2,3\n3,9\n")
        run("factor", "t.csv", "o.csv")
        run("solve", "t.csv", "o.csv", "--response", "y", status=5)
        run("solve", "t.csv", "o.csv", "--response", "y", "-f")
        self.assertEqual(sorted(os.listdir()), ["o.csv", "o.report.json", "t.csv"])
        run("solve", "t.csv", "o.csv", "--response", "y", status=5)
        run("verify", "t.csv", "o.csv")

    def test_an_output_that_exists_is_refused_before_the_table_is_read(self):
        write("t.csv", "a,y,g\n1,2,1\n2,bad,1\n3,9,1\n")
        for name in ("o.csv", "o.report.json"):
            write(name, "")
            for more in ((), ("--by", "g")):
                self.assertIn(f"'{name}' exists", said("solve", "t.csv", "o.csv", "--response",
                                                       "y", *more, status=5))
            os.remove(name)

    def test_several_responses_and_names_in_quotes(self):
        write("t.csv", 'a,"b, c","y ""1""",y2\n1,2,3,1\n2,5,4,7\n3,7,9,2\n4,1,1,5\n5,2,2,2\n')
        said = run("solve", "t.csv", "o.csv", "--response", "3-4", "--covariance")
        ours = pandas.read_csv("o.csv")
        self.assertEqual(list(ours.columns), ["response", "term", "x", "se", "t", "p"])
        self.assertEqual(ours["response"].tolist(), ['y "1"'] * 2 + ["y2"] * 2)
        self.assertEqual(ours["term"].tolist(), ["a", "b, c"] * 2)
        table = pandas.read_csv("t.csv").to_numpy()
        expected = np.linalg.lstsq(table[:, :2], table[:, 2:], rcond=None)[0]
        np.testing.assert_allclose(ours["x"], expected.T.ravel())
        run("verify", "t.csv", "o.csv")
        self.assertTrue(os.path.exists("o.covariance.csv"))
        self.assertIn("y2: residual standard deviation", said)
        found = json.loads(run("solve", "t.csv", "o.csv", "-f", "--response", "3-4", "--json"))
        np.testing.assert_allclose([each["x"] for each in found["coefficients"]], ours["x"])
        self.assertEqual(found["coefficients"][1]["term"], "b, c")
        self.assertEqual(sorted(found["coefficients"][0]),
                         ["p", "response", "se", "t", "term", "x"])

    def test_numbers_that_are_none(self):
        write("t.csv", "a,b,y\n1,2,3\n2,4,4\n3,6,9\n")
        run("solve", "t.csv", "o.csv", "--response", "y")  # dependent columns: no se
        self.assertTrue(pandas.read_csv("o.csv")[["se", "t", "p"]].isna().all().all())
        self.assertEqual(r_says(R_READ, "o.csv").split(), ["a", "b"])

    def test_a_ridge_leaves_the_intercept_alone(self):
        a, noise = self.random.standard_normal((50, 2)), self.random.standard_normal(50)
        y = 100 + a @ [1, 2] + noise
        frame = pandas.DataFrame(np.column_stack([a, y]), columns=["a", "b", "y"])
        frame.to_csv("t.csv", index=False, float_format="%.17g")
        design = np.column_stack([np.ones(50), a])
        expected = np.linalg.solve(design.T @ design + 50 * np.diag([0, 1, 1]), design.T @ y)
        centred = a - a.mean(axis=0)  # as scikit-learn does it
        slopes = np.linalg.solve(centred.T @ centred + 50 * np.eye(2), centred.T @ y)
        for table in ("t.csv", "tall.csv"):
            if table == "tall.csv":
                frame = pandas.concat([frame] * 2000)
                frame.to_csv(table, index=False, float_format="%.17g")
                expected = np.linalg.solve(2000 * design.T @ design + 1e5 * np.diag([0, 1, 1]),
                                           2000 * design.T @ y)
            ridge = "50" if table == "t.csv" else "1e5"
            run("solve", table, "o.csv", "-f", "--response", "y", "--intercept", "--ridge", ridge)
            np.testing.assert_allclose(pandas.read_csv("o.csv")["x"], expected, rtol=1e-10)
            np.testing.assert_allclose(expected[1:], slopes, rtol=1e-9)
            run("verify", table, "o.csv")

    def test_pipes(self):
        a, b = self.random.standard_normal((9, 3)), self.random.standard_normal((9, 2))
        np.save("a.npy", a)
        np.save("b.npy", b)
        expected = np.linalg.lstsq(a, b, rcond=None)[0]
        array = run("solve", "-", "b.npy", "-", "--format", "npy", "--rows", "matrix", "-q",
                    data=pathlib.Path("a.npy").read_bytes())
        np.testing.assert_allclose(np.load(io.BytesIO(array)), expected)
        text = run("solve", "a.npy", "-", "-", "--rows", "matrix", "-q",
                   data=pathlib.Path("b.npy").read_bytes())
        np.testing.assert_allclose(np.loadtxt(io.BytesIO(text), delimiter=","), expected)
        table = run("solve", "-", "-", "--response", "y", text="a,y\n1,2\n2,3\n3,9\n")
        self.assertEqual(table.splitlines()[0], "term,x,se,t,p")
        self.assertEqual(len(table.splitlines()), 2)
        x = run("solve", "-", "-", "--response", "y", "--format", "npy",
                data=b"a,y\n1,2\n2,3\n3,9\n")
        self.assertEqual(np.load(io.BytesIO(x)).shape, (1, 1))
        r = run("factor", "-", "-", "--mode", "r", "--format", "npy",
                data=pathlib.Path("a.npy").read_bytes())
        np.testing.assert_allclose(np.abs(np.load(io.BytesIO(r))), np.abs(np.linalg.qr(a)[1]))
        self.assertIn(".npy", run("info", "-", data=pathlib.Path("a.npy").read_bytes()).decode())
        self.assertEqual(sorted(os.listdir()), ["a.npy", "b.npy"])
        np.savez("a.npz", a=a)
        run("factor", "-", "o.h5", status=3, data=pathlib.Path("a.npz").read_bytes())
        run("solve", "a.npy", "b.npy", "o.npy", "--format", "npy", status=2)
        run("solve", "a.npy", "b.npy", "-", "--rows", "matrix", "--covariance", status=2)

    def test_confidence_needs_errors(self):
        for options in (("--ridge", "1"), ("--no-se",)):
            run("solve", LONGLEY, "o.csv", "--response", "y", "--confidence", "0.95", *options,
                status=2)
        for level in ("95", "0", "1"):
            run("solve", LONGLEY, "o.csv", "--response", "y", "--confidence", level, status=2)
        run("solve", "a.npy", "b.npy", "o.h5", "--confidence", "0.95", status=2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
