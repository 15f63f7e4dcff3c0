#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Units of columns change x and nothing else that `solve` and `verify` say: x is computed, judged
and explained as that of columns of norm 1, on every way through the program."""
import csv
import json
import pathlib
import sys
import unittest
from fractions import Fraction

import h5py
import numpy as np

from tool import FolderTest, has_device, run, said

YEARS = range(1990, 2024)
MEANS = (14.076, 14.042, 14.008, 14.089)  # of the first years; the others are drawn


def exact_r_squared(x, y, degree):
    """R^2 of the polynomial of least squares, in rational arithmetic."""
    columns = [[Fraction(v) ** k for v in x] for k in range(degree + 1)]
    y = [Fraction(v) for v in y]
    gram = [[sum(a * b for a, b in zip(u, v)) for v in columns + [y]] for u in columns]
    for k in range(degree + 1):
        for i in range(degree + 1):
            if i == k:
                continue
            factor = gram[i][k] / gram[k][k]
            gram[i] = [a - factor * b for a, b in zip(gram[i], gram[k])]
    beta = [row[-1] / row[k] for k, row in enumerate(gram)]
    mean = sum(y) / len(y)
    rest = [v - sum(b * c[i] for b, c in zip(beta, columns)) for i, v in enumerate(y)]
    return float(1 - sum(v * v for v in rest) / sum((v - mean) ** 2 for v in y))


class ColumnScales(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(23)

    def solve(self, a, b, *options, status=0, **more):
        """X and the report of a run, which verify confirms."""
        with h5py.File("in.h5", "w") as file:
            file["A"], file["b"] = a, b
            for name, array in more.items():
                file[name] = array
        weights = ("--weights", "in.h5:/w") if "w" in more else ()
        run("solve", "in.h5:/A", "in.h5:/b", "x.h5", "-f", *weights, *options, status=status)
        run("verify", "in.h5:/A", "in.h5:/b", "x.h5", *weights, status=status)
        with h5py.File("x.h5") as file:
            report = {name: numbers[...] for name, numbers in file["report"].items()}
            if "leverage" in file:
                report["leverage"] = file["leverage"][...]
            return file["X"][...], report

    def expect_the_same(self, a, b, powers, *options, **more):
        """For full rank, bit by bit but for the condition of the columns as they are."""
        x, report = self.solve(a, b, *options, **more)
        scaled, other = self.solve((a * 2.0 ** powers).astype(a.dtype), b, *options, **more)
        x = x if x.ndim > 1 or a.ndim == 2 else x[:, None]
        unit = 2.0 ** powers
        if x.ndim > 1 and x.shape[-1] != len(powers):
            unit = unit[:, None]
        np.testing.assert_array_equal(scaled * unit, x)
        for name, numbers in report.items():
            if name not in ("condition", "tries"):
                np.testing.assert_array_equal(other[name], numbers, err_msg=name)

    def test_units_change_x_alone(self):
        for kind in ("f4", "f8", "c8", "c16"):
            most = 60 if kind in ("f4", "c8") else 150
            for shape in ((50, 9, 4), (3, 70, 40), (40, 5), (6000, 6)):
                # float32 calls columns dependent from 10^5 on.
                for ill in (1e5,) if kind in ("f8", "c16") and shape[0] > 3 else (1e2,):
                    powers = self.random.integers(-most, most, shape[-1]).astype(float)
                    a = self.random.standard_normal(shape)
                    a[..., 1] = a[..., 0] + a[..., 1] / ill
                    b = self.random.standard_normal(shape[:-1])
                    if kind[0] == "c":
                        a = a + 1j * self.random.standard_normal(shape)
                        a[..., 1] = a[..., 0] + a[..., 1] / ill
                        b = b + 1j * b[..., ::-1]
                    a, b = a.astype(kind), b.astype(kind)
                    with self.subTest(kind=kind, shape=shape, ill=ill):
                        self.expect_the_same(a, b, powers, "--rows", "last")
                        if shape == (6000, 6):
                            self.expect_the_same(a, b, powers, "--rows", "last", "--memory",
                                                 "12MiB")

    def test_weights_gaps_and_many_right_sides(self):
        for kind in ("f4", "f8"):
            most = 60 if kind == "f4" else 150
            powers = self.random.integers(-most, most, 5).astype(float)
            a = self.random.standard_normal((40, 5)).astype(kind)
            b = self.random.standard_normal((33, 40)).astype(kind)
            gaps = b.copy()
            gaps[self.random.random(b.shape) < 0.1] = np.nan
            w = self.random.random((33, 40)).astype(kind)
            for options, sides, more in (
                    (("--se",), b, {}), (("--residuals", "--leverage"), b, {}),
                    (("--missing", "skip"), gaps, {}), ((), b, {"w": w}),
                    ((), b, {"w": w[0].copy()})):
                with self.subTest(kind=kind, options=options, weights="w" in more):
                    self.expect_the_same(a, sides, powers, "--rows", "last",
                                         *(o for o in options if o != "--se"), **more)

    @unittest.skipUnless(has_device(), "needs an OpenCL device")
    def test_a_device(self):
        for kind, tolerance in (("f4", 1e-4), ("f8", 1e-11)):
            for shape in ((60, 12, 4), (20, 40, 20), (3, 12, 30), (40, 5)):
                powers = self.random.integers(-40, 40, shape[-1]).astype(float)
                a = self.random.standard_normal(shape).astype(kind)
                b = self.random.standard_normal((5000, 40) if shape == (40, 5) else shape[:-1])
                b = b.astype(kind)
                scaled = (a * 2.0 ** powers).astype(kind)
                x, _ = self.solve(scaled, b, "--rows", "last", "--backend", "opencl")
                y, _ = self.solve(scaled, b, "--rows", "last", "--backend", "cpu")
                size = np.linalg.norm(y * 2.0 ** powers, axis=-1, keepdims=True)
                self.assertLess((abs(x - y) * 2.0 ** powers / size).max(), tolerance)

    def test_powers_of_years(self):
        """A polynomial of years has dependent columns from the sixth power on."""
        y = np.array(MEANS + tuple(14 + 0.02 * k + 0.1 * self.random.standard_normal()
                                   for k in range(len(YEARS) - len(MEANS)))).round(3)
        for x, degrees in ((YEARS, (4, 6, 8)), (np.linspace(19.6, 20.4, 34).round(4), (5, 9))):
            lines = ["x,y"] + [f"{u},{v}" for u, v in zip(x, y)]
            pathlib.Path("t.csv").write_text("\n".join(lines) + "\n", encoding="ascii")
            for degree in degrees:
                best, least = (exact_r_squared([float(u) for u in x], [float(v) for v in y], d)
                               for d in (degree, min(degree, 5)))
                run("solve", "t.csv", "x.csv", "--response", "y", "--intercept", "--polynomial",
                    f"x:{degree}", "-f")
                with open("x.csv", encoding="ascii") as file:
                    beta = [Fraction(float(row["x"])) for row in csv.DictReader(file)]
                mean = sum(Fraction(v) for v in y) / len(y)
                off = sum((Fraction(v) - sum(c * Fraction(float(u)) ** k
                                             for k, c in enumerate(beta))) ** 2
                          for u, v in zip(x, y))
                found = 1 - float(off / sum((Fraction(v) - mean) ** 2 for v in y))
                self.assertLess(found, best + 1e-12)
                # Six columns are independent. Rounding their coefficients costs some of R^2.
                self.assertGreater(found, least - 0.002)

    def test_a_wrong_x_fails_however_large_other_columns_are(self):
        a = self.random.standard_normal((30, 3)) * [1, 1e12, 1e20]
        b = a @ [3, 1e-12, 1e-20] + self.random.standard_normal(30)
        np.save("A.npy", a)
        np.save("b.npy", b)
        run("solve", "A.npy", "b.npy", "o.npy")
        run("verify", "A.npy", "b.npy", "o.npy")
        x = np.load("o.X.npy")
        for place in range(3):
            wrong = x.copy()
            wrong[place] *= 1 + 1e-6
            np.save("x.npy", wrong)
            run("verify", "A.npy", "b.npy", "x.npy", status=1)

    def test_wrong_residuals_fail_however_large_a_column_is(self):
        a = self.random.standard_normal((30, 2)) * [1, 1e20]
        b = self.random.standard_normal(30)
        with h5py.File("in.h5", "w") as file:
            file["A"], file["b"] = a, b
        run("solve", "in.h5:/A", "in.h5:/b", "x.h5", "--residuals", "--fitted")
        run("verify", "in.h5:/A", "in.h5:/b", "x.h5")
        with h5py.File("x.h5", "r+") as file:
            file["residuals"][3] += 1e-6
        run("verify", "in.h5:/A", "in.h5:/b", "x.h5", status=1)

    def test_a_fit_worse_than_the_mean_fails(self):
        """x solves a system that differs by rounding errors of A x, and fits nothing."""
        u = self.random.standard_normal(30)
        np.save("A.npy", np.stack([u, u], axis=1))
        np.save("b.npy", 5 + self.random.standard_normal(30))
        np.save("x.npy", np.array([0, 1e17, -1e17]))
        message = said("verify", "A.npy", "b.npy", "x.npy", "--intercept", status=1)
        self.assertIn("fits worse than the mean of b, R^2 is below 0", message)
        run("verify", "A.npy", "b.npy", "x.npy", "--intercept", "--json", status=1)

    def test_constants_have_no_r_squared(self):
        np.save("A.npy", self.random.standard_normal((30, 2)))
        np.save("b.npy", np.full(30, 7.0))
        run("solve", "A.npy", "b.npy", "x.h5", "--intercept")
        run("verify", "A.npy", "b.npy", "x.h5")
        with h5py.File("x.h5") as file:
            self.assertTrue(np.isnan(file["report/r_squared"][...]).all())

    def test_a_perfect_fit_is_said(self):
        t = 1.7e9 + 3600 * np.arange(30)
        for y, is_perfect in ((np.full(30, 5.0), True), (2 * t + 1, True),
                              (t + self.random.standard_normal(30), False)):
            lines = ["t,y"] + [f"{u:.17g},{v:.17g}" for u, v in zip(t, y)]
            pathlib.Path("t.csv").write_text("\n".join(lines) + "\n", encoding="ascii")
            text = said("solve", "t.csv", "x.csv", "--response", "y", "--intercept", "-f")
            self.assertEqual("perfect" in text, is_perfect, text)
            found = json.loads(run("solve", "t.csv", "x.csv", "--response", "y", "--intercept",
                                   "-f", "--json").stdout)
            self.assertEqual(found["fit"]["responses"][0]["is_perfect"], is_perfect)

    def test_dependent_columns_of_any_size(self):
        """The least norm is that of the columns as they are: that of a reference which scales."""
        for trial in range(40):
            m, rank, others = 30, 3, int(self.random.integers(1, 4))
            n = rank + others
            basis = self.random.standard_normal((m, rank))
            small = self.random.integers(-3, 4, (rank, others)).astype(float)
            small[0] = 1  # no column of zeros
            basis = np.round(basis * 1024) / 1024  # exact dependencies
            size = 10.0 ** self.random.integers(-8, 9, n)
            size = 2.0 ** np.round(np.log2(size))
            a = np.hstack([basis, basis @ small]) * size
            order = self.random.permutation(n)
            b = self.random.standard_normal(m)
            x, report = self.solve(a[:, order], b)
            with self.subTest(trial=trial):
                self.assertEqual(report["rank"], rank)
                # Fractions: x = least norm of the exact dependencies.
                y = np.linalg.lstsq(basis, b, rcond=None)[0]
                expected = self.least_norm(y, small, size)[order]
                np.testing.assert_allclose(x, expected, rtol=0,
                                           atol=1e-11 * abs(expected).max())
                fit = basis @ y
                np.testing.assert_allclose(a[:, order] @ x, fit, atol=1e-10 * abs(fit).max())

    @staticmethod
    def least_norm(y, small, size):
        """[y - small t; t] / size of least norm, by rational arithmetic for given y."""
        rank, others = small.shape
        rows = [[Fraction(small[i, j]) / Fraction(size[i]) for j in range(others)] +
                [Fraction(y[i]) / Fraction(size[i])] for i in range(rank)]
        rows += [[-Fraction(int(i == j)) / Fraction(size[rank + j]) for j in range(others)] +
                 [Fraction(0)] for i in range(others)]
        gram = [[sum(row[p] * row[q] for row in rows) for q in range(others + 1)]
                for p in range(others)]
        for k in range(others):
            for i in range(others):
                if i != k:
                    factor = gram[i][k] / gram[k][k]
                    gram[i] = [u - factor * v for u, v in zip(gram[i], gram[k])]
        t = [gram[k][-1] / gram[k][k] for k in range(others)]
        scaled = [Fraction(y[i]) - sum(Fraction(small[i, j]) * t[j] for j in range(others))
                  for i in range(rank)] + t
        return np.array([float(v / Fraction(s)) for v, s in zip(scaled, size)])


if __name__ == "__main__":
    del sys.argv[1:2]
    unittest.main()
