#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrtool solve --residuals --fitted` and R^2 agree with NumPy and R on every route, in every shape
of B and in every format, and are those of x as it is written."""
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import h5py
import numpy as np

from tool import FolderTest, has_device, peak_kib, run, said

ROOT = pathlib.Path(sys.argv[2])

# What verify says of numbers that were changed.
WRONG = {"residuals": "the residuals beside it are not b - A x",
         "fitted": "the fitted values beside it are not A x"}

R_FIT = """
t <- read.csv(commandArgs(TRUE)[1])
fit <- lm(y ~ . - w, t, weights = t$w, na.action = na.exclude)
cat(format(c(summary(fit)$r.squared, summary(lm(y ~ . - 1 - w, t, weights = t$w))$r.squared),
           digits = 17), sep = "\\n")
write.table(cbind(t$y - fitted(fit), predict(fit, t)), "r.txt",
            row.names = FALSE, col.names = FALSE)
"""


class Fits(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(41)

    def solve(self, *options, status=0, out="x.h5", **arrays):
        """Writes in.h5 and returns the datasets and the report of a run with both options."""
        with h5py.File("in.h5", "w") as file:
            for name, array in arrays.items():
                file[name] = array
        command = ["in.h5:/A", "in.h5:/b", out, *options]
        if "w" in arrays:
            command += ["--weights", "in.h5:/w"]
        run("solve", *command, "-f", "--residuals", "--fitted", status=status)
        with h5py.File(out) as file:
            found = {name: file[name][...] for name in ("X", "residuals", "fitted")}
            found |= {name: file["report/" + name][...] for name in file["report"]}
            of_x, of_fit = (file["report/" + name].attrs["bar"]
                            for name in ("backward_error", "orthogonality"))
            is_coarser = file["residuals"].dtype != file["X"].dtype
            self.assertEqual(of_fit, of_x * 2 ** 29 if is_coarser else of_x)
        return found

    @staticmethod
    def product(a, x, is_rows):
        """A X for one A, in float64."""
        a, x = a.astype(float), x.astype(float)
        return x @ a.T if is_rows else np.tensordot(a, x, (1, 0))

    def expect(self, found, b, fitted, kind):
        """Fitted values and residuals are rounded once; their type is b's."""
        b = b.astype(float)
        for name in ("residuals", "fitted"):
            self.assertEqual(found[name].dtype, kind)
            self.assertEqual(found[name].shape, b.shape)
        size = np.nanmax(np.abs(fitted), initial=0) + np.nanmax(np.abs(b), initial=0)
        eps = 1e-13 if kind == np.float64 else 3e-7
        np.testing.assert_allclose(found["fitted"], fitted, rtol=eps, atol=1e-13 * size)
        np.testing.assert_allclose(found["residuals"], b - fitted, rtol=eps, atol=1e-13 * size)
        bar = found["orthogonality"][np.isfinite(found["orthogonality"])]
        self.assertTrue((bar <= (1e-12 if kind == np.float64 else 1e-4)).all(), bar)

    def expect_r_squared(self, found, b, weights=1.0, axis=0):
        """Without an intercept."""
        b, residuals = b.astype(float), found["residuals"].astype(float)
        wanted = 1 - (np.nansum(weights * residuals ** 2, axis)
                      / np.nansum(weights * np.where(np.isnan(residuals), 0, b) ** 2, axis))
        np.testing.assert_allclose(found["r_squared"].ravel(), np.ravel(wanted), rtol=1e-6,
                                   atol=1e-6)

    def test_one_matrix_and_many_right_sides(self):
        for kind in ("f4", "f8"):
            for m, n in ((40, 1), (37, 5), (300, 32), (5000, 3), (700, 130)):
                a = self.random.standard_normal((m, n)).astype(kind)
                b = self.random.standard_normal((m, 211)).astype(kind)
                found = self.solve("--rows", "matrix", A=a, b=b)
                self.expect(found, b, self.product(a, found["X"], False), kind)
                self.expect_r_squared(found, b)
                found = self.solve("--rows", "last", A=a, b=b.T.copy())
                self.expect(found, b.T, self.product(a, found["X"], True), kind)
                self.expect_r_squared(found, b.T, axis=1)
            b = self.random.standard_normal((40, 6, 7)).astype(kind)
            a = self.random.standard_normal((40, 4)).astype(kind)
            found = self.solve("--rows", "first", A=a, b=b)
            self.expect(found, b, self.product(a, found["X"], False), kind)
            b = self.random.standard_normal((6, 7, 40)).astype(kind)
            found = self.solve("--rows", "last", A=a, b=b)
            self.expect(found, b, self.product(a, found["X"], True), kind)

    def test_systems_with_their_own_matrices(self):
        for kind in ("f4", "f8"):
            for shape, p in (((200, 12, 4), 1), ((30, 40, 30), 3), ((3, 300, 120), 2),
                             ((4, 50, 3), 60), ((9, 5, 8), 1)):
                a = self.random.standard_normal(shape).astype(kind)
                b = self.random.standard_normal((shape[0], shape[1], p)).astype(kind)
                found = self.solve(A=a, b=b)
                self.expect(found, b, a.astype(float) @ found["X"].astype(float), kind)
                if p == 1:
                    found = self.solve("--rows", "last", A=a, b=b[:, :, 0])
                    fitted = np.einsum("imn,in->im", a.astype(float), found["X"].astype(float))
                    self.expect(found, b[:, :, 0], fitted, kind)

    def test_on_a_device(self):
        """The host forms the fits of what a device solved."""
        if not has_device():
            self.skipTest("no OpenCL device")
        a = self.random.standard_normal((40, 5)).astype("f4")
        b = self.random.standard_normal((3000, 40)).astype("f4")
        found = self.solve("--rows", "last", "--backend", "opencl", A=a, b=b)
        self.expect(found, b, self.product(a, found["X"], True), "f4")
        self.expect_r_squared(found, b, axis=1)
        a = self.random.standard_normal((300, 16, 4)).astype("f4")
        b = self.random.standard_normal((300, 16)).astype("f4")
        found = self.solve("--rows", "last", "--backend", "opencl", A=a, b=b)
        fitted = np.einsum("imn,in->im", a.astype(float), found["X"].astype(float))
        self.expect(found, b, fitted, "f4")

    def test_tall_systems(self):
        for kind in ("f4", "f8"):
            a = self.random.standard_normal((60011, 5)).astype(kind)
            for b in (self.random.standard_normal(60011), self.random.standard_normal((60011, 3)),
                      self.random.standard_normal((3, 60011))):
                b = b.astype(kind)
                is_rows = b.shape[-1] == 60011
                found = self.solve(A=a, b=b)
                self.expect(found, b, self.product(a, found["X"], is_rows), kind)
                self.expect_r_squared(found, b, axis=-1 if is_rows else 0)
            b[b > 1.5] = np.nan
            w = self.random.uniform(0, 2, b.shape).astype(kind)
            for missing in (b, b.T.copy()):
                weights = w if missing is b else w.T.copy()
                found = self.solve("--missing", "skip", A=a, b=missing, w=weights)
                fitted = self.product(a, found["X"], missing is b)
                self.expect(found, missing, fitted, kind)
                self.expect_r_squared(found, missing, weights, axis=1 if missing is b else 0)

    def test_missing_rows_and_weights(self):
        a, b = self.random.standard_normal((50, 4)), self.random.standard_normal((50, 90))
        b[self.random.random(b.shape) < 0.2] = np.nan
        b[3:, 8] = np.nan
        a[7, 2] = np.nan
        for w in (None, self.random.uniform(0, 3, 50), self.random.uniform(0, 3, (50, 90))):
            more = {} if w is None else {"w": w}
            for is_rows in (False, True):
                given = b.T.copy() if is_rows else b
                if is_rows and w is not None and w.ndim == 2:
                    more["w"] = w.T.copy()
                found = self.solve("--missing", "skip", A=a, b=given, **more)
                fitted = self.product(a, found["X"], is_rows)
                self.assertTrue(np.isnan(fitted.T[7] if is_rows else fitted[7]).all())
                self.expect(found, given, fitted, "f8")
                weights = 1.0 if w is None else more["w"]
                if w is not None and w.ndim == 1:
                    weights = w[None, :] if is_rows else w[:, None]
                kept = np.arange(90) != 8
                found["r_squared"] = np.where(kept, found["r_squared"], 0)
                wanted = dict(found)
                self.assertTrue(np.isnan(found["orthogonality"][8]))
                self.assertEqual(found["status"][8], 5)
                found["r_squared"] = found["r_squared"][kept]
                found["residuals"] = wanted["residuals"][kept] if is_rows else \
                    wanted["residuals"][:, kept]
                part = weights
                if w is not None and w.ndim == 2:
                    part = weights[kept] if is_rows else weights[:, kept]
                self.expect_r_squared(found, given[kept] if is_rows else given[:, kept], part,
                                      axis=1 if is_rows else 0)

    def test_a_row_of_weight_zero_has_its_residual(self):
        a, b = self.random.standard_normal((20, 3)), self.random.standard_normal(20)
        w = np.ones(20)
        w[4], w[5], b[5] = 0, 0, np.nan
        found = self.solve(A=a, b=b, w=w)
        fitted = a @ found["X"]
        np.testing.assert_allclose(found["fitted"], fitted, rtol=1e-12)
        self.assertAlmostEqual(found["residuals"][4], b[4] - fitted[4], places=12)
        self.assertTrue(np.isnan(found["residuals"][5]))

    def test_ridge_rank_and_fewer_rows(self):
        a, b = self.random.standard_normal((30, 4)), self.random.standard_normal((30, 50))
        found = self.solve("--ridge", "3.5", A=a, b=b)
        self.expect(found, b, self.product(a, found["X"], False), "f8")
        gradient = a.T @ found["residuals"] - 3.5 * found["X"]
        self.assertLess(np.abs(gradient).max(), 1e-12)
        a[:, 3] = a[:, 0] + a[:, 1]
        for more in ((), ("--basic",)):
            found = self.solve(*more, A=a, b=b)
            self.expect(found, b, self.product(a, found["X"], False), "f8")
        a, b = self.random.standard_normal((5, 3, 6)), self.random.standard_normal((5, 3))
        found = self.solve("--rows", "last", A=a, b=b)
        self.expect(found, b, np.einsum("imn,in->im", a, found["X"]), "f8")

    def test_types(self):
        a, b = self.random.standard_normal((25, 3)), self.random.integers(0, 99, (25, 40))
        for given, kind, more in ((b.astype("f4"), "f4", ()), (b.astype("i2"), "f8", ()),
                                  (b.astype("f8"), "f4", ("--precision", "single")),
                                  (b.astype("f4"), "f8", ("--precision", "double"))):
            found = self.solve(*more, A=a, b=given)
            used = a.astype("f4") if more and kind == "f4" else a
            self.expect(found, given, self.product(used, found["X"], False), kind)

    def test_extreme_sizes(self):
        """R^2 and the check do not depend on powers of two."""
        a, b = self.random.standard_normal((25, 3)), self.random.standard_normal((25, 40))
        usual = self.solve(A=a, b=b)
        for of_a, of_b in ((0, 900), (0, -900), (600, -300), (-600, 300), (300, 700)):
            found = self.solve(A=a * 2.0 ** of_a, b=b * 2.0 ** of_b)
            np.testing.assert_allclose(found["r_squared"], usual["r_squared"], rtol=1e-9)
            self.assertTrue((found["orthogonality"] < 1e-13).all())
            np.testing.assert_allclose(found["residuals"] * 2.0 ** -of_b, usual["residuals"],
                                       atol=1e-12)

    def test_constant_and_exact(self):
        a = np.column_stack([np.ones(9), np.arange(9.0)])
        b = np.column_stack([np.full(9, 0.1), np.zeros(9), 3 + 2 * np.arange(9.0)])
        found = self.solve("--rows", "matrix", A=a, b=b)
        self.assertTrue(np.isnan(found["r_squared"][1]))
        np.testing.assert_allclose(found["r_squared"][[0, 2]], 1)
        np.savetxt("t.csv", np.column_stack([a[:, 1], b]), delimiter=",", header="x,c,z,y",
                   comments="")
        run("solve", "t.csv", "t.h5", "--response", "c,z,y", "--intercept")
        with h5py.File("t.h5") as file:
            r_squared = file["report/r_squared"][...]
        self.assertTrue(np.isnan(r_squared[:2]).all())
        self.assertAlmostEqual(r_squared[2], 1)

    def test_a_bad_matrix_stays_alone(self):
        a, b = self.random.standard_normal((6, 9, 3)), self.random.standard_normal((6, 9))
        good = self.solve(A=a, b=b)
        a[2, 4, 1] = np.nan
        found = self.solve(A=a, b=b, status=1)
        self.assertTrue(np.isnan(found["residuals"][2]).all())
        self.assertTrue(np.isnan(found["r_squared"][2]) and np.isnan(found["orthogonality"][2]))
        for name in ("residuals", "fitted", "r_squared", "orthogonality"):
            np.testing.assert_array_equal(np.delete(found[name], 2, 0), np.delete(good[name], 2, 0))

    def test_bits_do_not_depend_on_memory_and_threads(self):
        a = self.random.standard_normal((40000, 6))
        for b in (self.random.standard_normal((40000, 2)),
                  self.random.standard_normal((300, 40000))):
            found = self.solve("--threads", "1", A=a, b=b)
            for more in (("--threads", "3"), ("--threads", "2", "--memory", "80MiB")):
                other = self.solve(*more, A=a, b=b)
                for name, values in found.items():
                    np.testing.assert_array_equal(other[name], values, err_msg=name)

    def test_every_format(self):
        a, b = self.random.standard_normal((12, 4)), self.random.standard_normal((12, 3))
        for kind in ("f8", "f4"):
            found = self.solve("--rows", "matrix", A=a.astype(kind), b=b.astype(kind))
            for ending in ("npz", "csv", "tsv", "mtx", "npy"):
                run("solve", "in.h5:/A", "in.h5:/b", f"o.{ending}", "--residuals", "--fitted", "-f")
                said("verify", "in.h5:/A", "in.h5:/b", f"o.{ending}")
                run("info", f"o.{ending}")
            for name in ("residuals", "fitted"):
                np.testing.assert_array_equal(np.load("o.npz")[name], found[name])
                np.testing.assert_array_equal(np.load(f"o.{name}.npy"), found[name])
                np.testing.assert_array_equal(np.loadtxt(f"o.{name}.csv", delimiter=",",
                                                         dtype=kind), found[name])
                np.testing.assert_array_equal(np.loadtxt(f"o.{name}.tsv", dtype=kind), found[name])
                self.assertEqual(np.load(f"o.{name}.npy").dtype, kind)
        report = json.loads(pathlib.Path("o.report.json").read_text(encoding="utf-8"))["report"]
        np.testing.assert_allclose(report["r_squared"]["values"], found["r_squared"])
        # The files of a run are bound together.
        for ending, name in itertools.product(("csv", "tsv", "mtx", "npy"), WRONG):
            run("solve", "in.h5:/A", "in.h5:/b", f"o.{ending}", f"--{name}", "-f")
            self.turn(f"o.{name}.{ending}")
            self.assertIn("are not the solutions",
                          said("verify", "in.h5:/A", "in.h5:/b", f"o.{ending}", status=3))
        run("solve", "in.h5:/A", "in.h5:/b", "o.npy", "-f")
        self.assertFalse(os.path.exists("o.residuals.npy") or os.path.exists("o.fitted.npy"))

    @staticmethod
    def turn(path):
        """Turns the rows of a file upside down."""
        if path.endswith(".npy"):
            np.save(path, np.load(path)[::-1])
            return
        lines = pathlib.Path(path).read_text(encoding="ascii").splitlines()
        head = [line for line in lines if line[0] in "#%"]
        if path.endswith(".mtx"):  # the shape
            head.append(lines[len(head)])
        pathlib.Path(path).write_text("\n".join(head + lines[len(head):][::-1]) + "\n",
                                      encoding="ascii")

    def test_vectors_in_every_format(self):
        """A right side that is one row comes in parts where it is tall."""
        for m in (15, 60000):
            a, b = self.random.standard_normal((m, 3)), self.random.standard_normal((2, m))
            found = self.solve(A=a, b=b)
            single = self.solve(A=a, b=b[0])
            for ending in ("npy", "csv", "mtx"):
                run("solve", "in.h5:/A", "in.h5:/b", f"o.{ending}", "--residuals", "-f")
                run("verify", "in.h5:/A", "in.h5:/b", f"o.{ending}")
            np.testing.assert_array_equal(np.load("o.residuals.npy"), single["residuals"])
            np.testing.assert_array_equal(np.loadtxt("o.residuals.csv", delimiter=","),
                                          single["residuals"])
            np.testing.assert_allclose(found["residuals"][0], single["residuals"], atol=1e-12)

    def test_selections_and_order(self):
        a, b = self.random.standard_normal((20, 3)), self.random.standard_normal((20, 50))
        with h5py.File("in.h5", "w") as file:
            file["A"], file["b"], file["At"], file["bt"] = a, b, a.T, b.T
        run("solve", "in.h5:/A[4:]", "in.h5:/b[4:, ::2]", "x.h5", "--residuals")
        with h5py.File("x.h5") as file:
            self.assertEqual(file["residuals"].shape, (16, 25))
            np.testing.assert_allclose(file["residuals"][...],
                                       b[4:, ::2] - a[4:] @ file["X"][...], atol=1e-13)
        run("solve", "in.h5:/At", "in.h5:/bt", "y.h5", "--order", "column", "--residuals")
        with h5py.File("y.h5") as file:
            self.assertEqual(file["residuals"].shape, (50, 20))
            np.testing.assert_allclose(file["residuals"][...].T, b - a @ file["X"][...].T,
                                       atol=1e-13)

    def table(self):
        rows = self.random.standard_normal((40, 5))
        rows[:, 3] = 100 + rows[:, 0] - rows[:, 1]
        rows[:, 4] = self.random.uniform(0.1, 2, 40)
        text = ["u,v,z,y,w"] + [",".join(f"{x:.17g}" for x in row) for row in rows]
        text[7] = text[7].replace(text[7].split(",")[3], "NA", 1)
        text[9] = text[9].replace(text[9].split(",")[1], "NA", 1)
        pathlib.Path("t.csv").write_text("\n".join(text) + "\n", encoding="utf-8")

    @unittest.skipUnless(shutil.which("Rscript"), "needs R")
    def test_r_agrees(self):
        self.table()
        pathlib.Path("script.R").write_text(R_FIT, encoding="utf-8")
        done = subprocess.run(["Rscript", "--vanilla", "script.R", "t.csv"], capture_output=True,
                              text=True, timeout=120, check=True)
        with_intercept, without = map(float, done.stdout.split())
        command = ("solve", "t.csv", "o.csv", "--response", "y", "--weights", "w", "--missing",
                   "skip", "-f", "--json", "--residuals", "--fitted")
        fit = json.loads(run(*command).stdout)["fit"]
        self.assertAlmostEqual(fit["responses"][0]["r_squared"], without, places=12)
        fit = json.loads(run(*command, "--intercept").stdout)["fit"]
        self.assertAlmostEqual(fit["responses"][0]["r_squared"], with_intercept, places=12)
        theirs = np.genfromtxt("r.txt")
        np.testing.assert_allclose(np.loadtxt("o.residuals.csv", skiprows=1), theirs[:, 0],
                                   atol=1e-11)
        np.testing.assert_allclose(np.loadtxt("o.fitted.csv", skiprows=1), theirs[:, 1], rtol=1e-12)
        self.assertEqual(np.isnan(theirs[:, 0]).sum(), 2)

    def test_what_groups_have_none_of(self):
        self.table()
        with h5py.File("in.h5", "w") as file:
            file["A"], file["b"], file["g"] = np.eye(4, 2), np.ones(4), np.array([1, 1, 2, 2])
        table = ("solve", "t.csv", "o.csv", "--response", "y", "--by", "u")
        files = ("solve", "in.h5:/A", "in.h5:/b", "o.csv", "--groups", "in.h5:/g")
        for command in (table, files):
            self.assertIn("contradicts --polynomial",
                          said(*command, "--polynomial", "v:2", status=2))
        for more in (("--a", "t"), ("--intercept",)):
            self.assertIn(f"--groups contradicts {more[0]}", said(*files, *more, status=2))

    def test_verify_measures_fits(self):
        """In every format, on every route, with weights and gaps: those of another x are found."""
        a, b = self.random.standard_normal((40, 3)), self.random.standard_normal((40, 25))
        b[3, 4] = np.nan
        w = self.random.uniform(0, 2, 40)
        np.save("a.npy", a)
        np.save("w.npy", w)
        options = ("--weights", "w.npy")
        for out, kind in itertools.product(("o.npy", "o.npz", "o.h5"), ("f8", "f4")):
            np.save("b.npy", b.astype(kind))
            command = ("a.npy", "b.npy", out, *options)
            for wanted in (("residuals",), ("fitted",), ("residuals", "fitted")):
                run("solve", *command, "-f", *(f"--{name}" for name in wanted), "--missing", "skip",
                    "--rows", "first")
                run("verify", *command)
                for name in wanted:
                    if out == "o.h5":
                        self.change_numbers(command, name, kind)
        # By rows, and where squares leave the range of float64.
        a, b = self.random.standard_normal((60000, 2)), 1e180 * self.random.standard_normal(60000)
        with h5py.File("tall.h5", "w") as file:
            file["A"], file["b"] = a * 1e170, b
        command = ("tall.h5:/A", "tall.h5:/b", "t.h5")
        for name, words in WRONG.items():
            run("solve", *command, "-f", f"--{name}", "--memory", "12MiB", "--variant", "cpu/tall")
            run("verify", *command)
            with h5py.File("t.h5", "r+") as file:
                x = np.linalg.lstsq(a, b / 1e180, rcond=None)[0]
                r = b / 1e180 - a @ x
                self.assertAlmostEqual(file["report/r_squared"][0],
                                       1 - r @ r / np.sum((b / 1e180) ** 2), places=12)
                file[name][17] = 0
            self.assertIn(words, said("verify", *command, status=1))

    def change_numbers(self, command, name, kind):
        """One number of one right side, by far less than anyone would see; and a residual where a
        row is missing."""
        with h5py.File("o.h5", "r+") as file:
            right = file[name][...]
            wrong, filled = right.copy(), right.copy()
            wrong[7, 11] *= 1 + (1e-9 if kind == "f8" else 1e-2)
            filled[3, 4] = 0
            file[name][...] = wrong
        text = said("verify", *command, status=1)
        self.assertIn(f"solution 11 fails: {WRONG[name]}", text)
        self.assertIn("24 of 25 pass", text)
        for numbers, status in ((filled, int(name == "residuals")), (right, 0)):
            with h5py.File("o.h5", "r+") as file:
                file[name][...] = numbers
            text = said("verify", *command, status=status)
            self.assertEqual(f"solution 4 fails: {WRONG[name]}" in text, status == 1)

    def test_certified_r_squared(self):
        """Of all eleven sets of NIST to at least 8 digits, where 1 - R^2 has them."""
        with open(ROOT / "samples/strd/certified.csv", encoding="utf-8") as file:
            certified = [line.strip().split(",") for line in file]
        wanted = {row[0]: float(row[2]) for row in certified if row[1] == "r_squared"}
        self.assertGreaterEqual(len(wanted), 8)
        for name, value in wanted.items():
            table = np.genfromtxt(ROOT / f"samples/strd/{name}.csv", delimiter=",", skip_header=1)
            with open(ROOT / f"samples/strd/{name}.csv", encoding="utf-8") as file:
                response = file.readline().split(",")[0].strip()
            b, x = table[:, 0], table[:, 1:]
            powers = {"pontius": 2, "filip": 10}.get(name, 5 if "wampler" in name else 1)
            if x.shape[1] == 1:
                x = np.column_stack([x[:, 0] ** k for k in range(1, powers + 1)])
            header = ",".join([response, *[f"x{j}" for j in range(x.shape[1])]])
            np.savetxt("t.csv", np.column_stack([b, x]), delimiter=",", fmt="%.17g",
                       header=header, comments="")
            more = [] if "noint" in name else ["--intercept"]
            more += ["--rank-tolerance", "1e-16"] if name == "filip" else []
            text = said("solve", "t.csv", "o.h5", "-f", "--response", response, *more)
            with h5py.File("o.h5") as file:
                found = file["report/r_squared"][0]
            np.testing.assert_allclose(found, value, rtol=1e-8, err_msg=name)
            self.assertIn(f"R^2 {found:.6g}", text)

    def test_peak_memory_is_bounded(self):
        """Neither B nor what is written is ever in memory."""
        a, b = self.random.standard_normal((500, 4)), self.random.standard_normal((40000, 500))
        with h5py.File("in.h5", "w") as file:
            file["A"], file["b"] = a, b
        peak = peak_kib("solve", "in.h5:/A", "in.h5:/b", "x.h5", "--backend", "cpu", "--memory",
                        "64MiB", "--threads", "2", "--residuals", "--fitted", "-f")
        self.assertLess(peak, (64 + 60) << 10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
