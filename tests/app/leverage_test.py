#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrtool solve --leverage` and `factor --leverage` agree with NumPy and with hatvalues of R, and
what has no leverages of its own is refused by name."""
import csv
import itertools
import pathlib
import shutil
import subprocess
import sys
import unittest

import h5py
import numpy as np

from tool import FolderTest, run, said

ROOT = pathlib.Path(sys.argv[2])

R_HAT = """
t <- read.csv(commandArgs(TRUE)[1])
cat(format(hatvalues(lm(y ~ . - w, t, weights = t$w, na.action = na.exclude)), digits = 17),
    sep = "\\n")
"""


def hat(a, rank=None, ridge=0.0):
    """By the singular values of columns scaled to norm 1."""
    a = a.astype("c16" if a.dtype.kind == "c" else "f8")
    norms = np.linalg.norm(a, axis=0)
    if ridge:
        gram = a.conj().T @ a + ridge * np.eye(a.shape[1])
        return np.einsum("ij,ij->i", a, np.linalg.solve(gram, a.conj().T).T).real
    u = np.linalg.svd(a / np.where(norms > 0, norms, 1), full_matrices=False)[0]
    return np.sum(abs(u[:, :rank]) ** 2, axis=1)


class Leverage(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(17)

    def draw(self, shape, kind="f8"):
        a = self.random.standard_normal(shape)
        if kind[0] == "c":
            a = a + 1j * self.random.standard_normal(shape)
        return a.astype(kind)

    def solve(self, *options, status=0, **arrays):
        with h5py.File("in.h5", "w") as file:
            for name, array in arrays.items():
                file[name] = array
        more = ("--weights", "in.h5:/w") if "w" in arrays else ()
        run("solve", "in.h5:/A", "in.h5:/b", "x.h5", "-f", "--leverage", *more, *options,
            status=status)
        with h5py.File("x.h5") as file:
            error, bar = file["report/leverage_error"], file["report/leverage_error"].attrs["bar"]
            self.assertFalse((error[...] > bar).any())
            return file["leverage"][...]

    def test_the_report_of_factors_binds_them(self):
        for ending, report, kind, matrices in (
                ("npy", "json", "f8", 3), ("csv", "csv", "f8", 3), ("tsv", "csv", "f4", 1200),
                ("csv", "csv", "f4", 1), ("mtx", "json", "f8", 1)):
            a = self.random.standard_normal((matrices, 9, 4)).astype(kind)
            np.save("a.npy", a if matrices > 1 else a[0])
            out, file = f"q.{ending}", pathlib.Path(f"q.leverage.{ending}")
            for others in ((), ("--mode", "r", "--check", "none")):
                run("factor", "a.npy", out, "--leverage", "-f", *others)
                run("verify", "a.npy", out)
                run("info", out)
            of_run = file.read_bytes()
            if ending == "npy":
                h = np.load(file)
                h[1, 2] += 1e-3
                np.save(file, h)
            else:  # the first number of the last line
                lines = file.read_text(encoding="ascii").splitlines()
                lines[-1] = lines[-1].replace("0.", "0.1", 1)
                file.write_text("\n".join(lines) + "\n", encoding="ascii")
            self.assertNotEqual(file.read_bytes(), of_run)
            self.assertIn(f"q.leverage.{ending} are not the leverages that q.report.{report} "
                          "describes", said("verify", "a.npy", out, status=3))
            file.unlink()
            run("verify", "a.npy", out)
            pathlib.Path(f"q.report.{report}").unlink()

    def test_the_table_of_a_report_says_it_once(self):
        """In the first line, so that the leverages need not be known before the others."""
        np.save("a.npy", self.random.standard_normal((3, 9, 4)))
        run("factor", "a.npy", "q.csv", "--leverage")
        with open("q.report.csv", encoding="ascii") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0])[-2:], ["checksum", "leverage_checksum"])
        self.assertRegex(rows[0]["leverage_checksum"], "^0x(?!0{16})[0-9a-f]{16}$")
        self.assertEqual([row["leverage_checksum"] for row in rows[1:]], ["", ""])
        run("factor", "a.npy", "q.csv", "-f")
        self.assertNotIn("leverage", pathlib.Path("q.report.csv").read_text(encoding="ascii"))

    def test_small_and_large(self):
        for kind, atol in (("f4", 1e-7), ("f8", 1e-12), ("c8", 1e-7), ("c16", 1e-12)):
            for shape in ((12, 4), (300, 30), (5, 5), (9, 1), (70001, 6), (3000, 140)):
                a = (self.draw(shape, kind) * np.logspace(0, 6, shape[1])).astype(kind)
                b = self.draw((shape[0], 11), kind)
                found = self.solve("--rows", "first" if shape[0] != shape[1] else "matrix", A=a,
                                   b=b)
                self.assertEqual(found.dtype, "f4" if kind in ("f4", "c8") else "f8")
                self.assertTrue((0 <= found).all() and (found <= 1).all())
                self.assertAlmostEqual(found.sum(dtype=float), shape[1], delta=1e3 * atol)
                np.testing.assert_allclose(found, hat(a), atol=atol)

    def test_a_batch(self):
        for kind, turn, bad in (("f8", 1, np.nan), ("c16", 1j, complex(1, np.nan))):
            a, b = self.draw((2, 70, 9, 3), kind), self.draw((2, 70, 9), kind)
            a[1, 3, :, 2] = a[1, 3, :, 0] * turn
            a[1, 4, 2, 1] = bad
            a[1, 5] = 0
            found = self.solve("--rows", "last", A=a, b=b, status=1)
            self.assertEqual(found.shape, (2, 70, 9))
            for index in np.ndindex(2, 70):
                if index == (1, 4):
                    self.assertTrue(np.isnan(found[index]).all())
                else:
                    rank = {(1, 3): 2, (1, 5): 0}.get(index, 3)
                    np.testing.assert_allclose(found[index], hat(a[index], rank), atol=1e-13)

    def test_one_b_for_several_a(self):
        for kind, lead in (("f8", (3,)), ("c16", (1, 2)), ("f8", (2, 1))):
            a, b = self.draw((*lead, 10, 2), kind), self.draw(10, kind)
            w = self.random.uniform(0.1, 2, 10)
            weighted = self.solve(A=a, b=b, w=w)
            b[4] = np.nan
            found, kept = self.solve("--missing", "skip", A=a, b=b), np.arange(10) != 4
            self.assertTrue(np.isnan(found[..., 4]).all())
            for index in np.ndindex(lead):
                np.testing.assert_allclose(weighted[index], hat(a[index] * np.sqrt(w)[:, None]),
                                           atol=1e-13)
                np.testing.assert_allclose(found[index][kept], hat(a[index][kept]), atol=1e-13)

    def test_rank_ridge_and_weights(self):
        for kind, m in itertools.product(("f8", "c16"), (40, 60000)):
            a, b = self.draw((m, 5), kind), self.draw(m, kind)
            w = self.random.uniform(0, 2, m)
            w[3] = 0
            found = self.solve(A=a, b=b, w=w)
            np.testing.assert_allclose(found, hat(a * np.sqrt(w)[:, None]), atol=1e-12)
            self.assertEqual(found[3], 0)
            found = self.solve("--ridge", "7.5", A=a, b=b, w=w)
            np.testing.assert_allclose(found, hat(a * np.sqrt(w)[:, None], ridge=7.5), atol=1e-12)
            a[:, 4] = a[:, 1] - a[:, 2]
            np.testing.assert_allclose(self.solve(A=a, b=b), hat(a, 4), atol=1e-12)
            b[7] = a[9, 1] = np.nan if kind == "f8" else complex(1, np.nan)
            found = self.solve("--missing", "skip", A=a, b=b)
            kept = np.isfinite(b) & np.isfinite(a).all(axis=1)
            self.assertTrue(np.isnan(found[~kept]).all())
            np.testing.assert_allclose(found[kept], hat(a[kept], 4), atol=1e-12)

    def test_the_rank_is_that_of_the_report(self):
        """Dummies that add up to the intercept, beside which sums of many rows round."""
        for kind, m, seed in itertools.product(("f8", "c16"), (1000, 3000, 10000, 100000), (0, 1)):
            chance = np.random.default_rng(seed)
            one = chance.integers(0, 2, m)
            a = np.stack([np.ones(m), one, 1 - one], 1).astype(kind)
            np.testing.assert_allclose(self.solve(A=a, b=self.draw(m, kind)), hat(a, 2),
                                       atol=1e-12)
            np.save("a.npy", a)
            for more in ((), ("--pivot",)):
                run("factor", "a.npy", "q.npz", "-f", "--mode", "r", "--leverage", *more)
                np.testing.assert_allclose(np.load("q.npz")["leverage"], hat(a, 2), atol=1e-12)
        # The rank that float32 sees is one less than that of the same numbers in float64.
        a = np.stack([np.ones(40), 1 + 1e-7 * np.arange(40) % 2], 1).astype("f4")
        for m in (40, 200000):
            some = np.resize(a, (m, 2))
            found = self.solve(A=some, b=self.draw(m, "f4"))
            with h5py.File("x.h5") as file:
                rank = int(file["report/rank"][...].flat[0])
            np.testing.assert_allclose(found, hat(some, rank), atol=1e-5)

    def test_weights_and_a_ridge_beyond_float32(self):
        a, b = self.draw((20, 3), "f4"), self.draw(20, "f4")
        w = (self.random.random(20) + 0.1) * 1e-42
        root = np.sqrt(w * 1e42)[:, None]
        np.testing.assert_allclose(self.solve("--ridge", "1e-42", A=a, b=b, w=w),
                                   hat(a * root, ridge=1.0), atol=1e-6)

    def test_hard_columns(self):
        """Near dependencies and scales, to what the condition of scaled columns allows."""
        t = np.linspace(-1, 1, 50)
        for degree in (3, 8, 12):
            for m in (50, 40000):
                t = np.linspace(-1, 1, m)
                a = np.vander(3 + t, degree + 1)
                found = self.solve("--rank-tolerance", "1e-300", A=a, b=t)
                condition = np.linalg.cond(a / np.linalg.norm(a, axis=0))
                # A basis that is orthogonal to the last bit spans the same space.
                exact = hat(np.polynomial.chebyshev.chebvander(t, degree))
                np.testing.assert_allclose(found, exact, atol=max(100 * 2.2e-16 * condition, 1e-13))

    def test_bits_do_not_depend_on_threads(self):
        for kind in ("f8", "c16"):
            a, b = self.draw((50000, 7), kind), self.draw(50000, kind)
            one = self.solve("--threads", "1", A=a, b=b)
            np.testing.assert_array_equal(self.solve("--threads", "3", A=a, b=b), one)

    def test_a_real_matrix_beside_complex_right_sides(self):
        a, b = self.draw((30, 4)), self.draw(30, "c16")
        np.testing.assert_allclose(self.solve(A=a, b=b), hat(a), atol=1e-13)
        np.testing.assert_allclose(self.solve(A=a + 1j * a[::-1], b=b.real), hat(a + 1j * a[::-1]),
                                   atol=1e-13)

    def test_every_format(self):
        for kind in ("f8", "c16"):
            a, b = self.draw((12, 4), kind), self.draw((12, 2), kind)
            found = self.solve("--rows", "matrix", A=a, b=b)
            for ending in ("npz", "csv", "mtx", "npy"):
                run("solve", "in.h5:/A", "in.h5:/b", f"o.{ending}", "--leverage", "-f")
                run("verify", "in.h5:/A", "in.h5:/b", f"o.{ending}")
            np.testing.assert_array_equal(np.load("o.npz")["leverage"], found)
            np.testing.assert_array_equal(np.load("o.leverage.npy"), found)
            np.testing.assert_array_equal(np.loadtxt("o.leverage.csv", delimiter=","), found)

    @unittest.skipUnless(shutil.which("Rscript"), "needs R")
    def test_r_agrees(self):
        pathlib.Path("script.R").write_text(R_HAT, encoding="utf-8")
        rows = self.random.standard_normal((40, 5))
        rows[:, 4] = self.random.uniform(0.1, 2, 40)
        text = ["u,v,z,y,w"] + [",".join(f"{x:.17g}" for x in row) for row in rows]
        text[7] = text[7].replace(text[7].split(",")[3], "NA", 1)
        pathlib.Path("t.csv").write_text("\n".join(text) + "\n", encoding="utf-8")
        longley = (ROOT / "samples/strd/longley.csv").read_text(encoding="utf-8").splitlines()
        lines = [line for line in longley if line and not line.startswith("#")]
        pathlib.Path("l.csv").write_text("\n".join([lines[0] + ",w"] + [
            line + ",1" for line in lines[1:]]) + "\n", encoding="utf-8")
        for table in ("t.csv", "l.csv"):
            done = subprocess.run(["Rscript", "--vanilla", "script.R", table], check=True,
                                  capture_output=True, text=True, timeout=120)
            theirs = np.array([float(x) for x in done.stdout.split()])
            run("solve", table, "o.csv", "--response", "y", "--weights", "w", "--missing", "skip",
                "--intercept", "--leverage", "-f")
            ours = np.loadtxt("o.leverage.csv", skiprows=1)
            # R gives 0 for a row that is missing.
            np.testing.assert_array_equal(np.isnan(ours), theirs == 0)
            np.testing.assert_allclose(np.nan_to_num(ours), theirs, atol=1e-9)

    def test_factor(self):
        for shape in ((30, 5), (4, 3, 20, 7), (6, 3), (50000, 3), (3, 4, 9)):
            a = self.random.standard_normal(shape)
            if len(shape) == 4:
                a[1, 1, :, 6] = a[1, 1, :, 0] - a[1, 1, :, 5]
            np.save("a.npy", a)
            with h5py.File("a.h5", "w") as file:
                file["A"], file["T"] = a, np.swapaxes(a, -1, -2)
            for more in ((), ("--mode", "r"), ("--mode", "raw"), ("--pivot",),
                         ("--precision", "single")):
                run("factor", "a.npy", "q.h5", "-f", "--leverage", *more)
                run("verify", "a.npy", "q.h5")
                with h5py.File("q.h5") as file:
                    found = file["leverage"][...]
                self.assertEqual(found.shape, shape[:-1])
                for index in np.ndindex(shape[:-2]):
                    np.testing.assert_allclose(
                        found[index], hat(a[index], 6 if index == (1, 1) else None),
                        atol=1e-7 if more[-1:] == ("single",) else 1e-12)
            run("factor", "a.h5:/T", "t.h5", "-f", "--leverage", "--order", "column")
            with h5py.File("t.h5") as file:
                np.testing.assert_allclose(file["leverage"][...], hat(a) if a.ndim == 2 else found,
                                           atol=1e-6)
            for out in ("q.npy", "q.npz", "q.csv"):
                run("factor", "a.npy", out, "-f", "--leverage")
                run("verify", "a.npy", out)
            if a.ndim == 2:
                run("factor", "a.npy", "q.mtx", "-f", "--leverage")
                run("verify", "a.npy", "q.mtx")
                np.testing.assert_allclose(np.loadtxt("q.leverage.csv", delimiter=","), hat(a),
                                           atol=1e-12)
            np.testing.assert_array_equal(np.load("q.leverage.npy"), np.load("q.npz")["leverage"])
            run("factor", "a.npy", "q.npy", "-f")
            self.assertFalse(pathlib.Path("q.leverage.npy").exists())
        self.assertIn("standard output takes R", said("factor", "a.npy", "-", "--mode", "r",
                                                      "--leverage", status=2))

    def test_factor_of_complex_matrices(self):
        for shape in ((30, 5), (4, 3, 20, 7), (6, 3), (50000, 3), (3, 4, 9)):
            a = self.draw(shape, "c16")
            if len(shape) == 4:
                a[1, 1, :, 6] = a[1, 1, :, 0] - 1j * a[1, 1, :, 5]
            np.save("a.npy", a)
            for more in ((), ("--mode", "raw"), ("--pivot",), ("--precision", "single")):
                run("factor", "a.npy", "q.h5", "-f", "--leverage", *more)
                run("verify", "a.npy", "q.h5")
                with h5py.File("q.h5") as file:
                    found = file["leverage"][...]
                self.assertEqual((found.shape, found.dtype.kind), (shape[:-1], "f"))
                for index in np.ndindex(shape[:-2]):
                    rank = 6 if index == (1, 1) else min(shape[-2:])
                    np.testing.assert_allclose(found[index], hat(a[index], rank),
                                               atol=1e-7 if more[-1:] == ("single",) else 1e-12)
                    self.assertAlmostEqual(found[index].sum(dtype=float), rank, delta=1e-4)
            for out in ("q.npy", "q.npz", "q.csv"):
                run("factor", "a.npy", out, "-f", "--leverage")
                run("verify", "a.npy", out)
            np.testing.assert_array_equal(np.load("q.leverage.npy"), np.load("q.npz")["leverage"])

    def test_what_has_none_is_refused(self):
        a, b = self.random.standard_normal((8, 2)), self.random.standard_normal((8, 3))
        with h5py.File("in.h5", "w") as file:
            file["A"], file["b"], file["w"] = a, b, np.abs(b)
        command = ("solve", "in.h5:/A", "in.h5:/b", "x.h5", "--leverage")
        self.assertIn("--leverage and weights of its own",
                      said(*command, "--weights", "in.h5:/w", status=2))
        self.assertIn("--leverage and --missing skip contradict",
                      said(*command, "--missing", "skip", status=2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
