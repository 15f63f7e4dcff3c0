#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One regression for each row over the last rows (`solve --window`), from outside: random problems
against NumPy, statsmodels' RollingOLS, outputs of all kinds, and what is refused.

window_test.py TOOL [--problems N] [--seed S]: with N, so many random problems alone."""
import argparse
import csv
import io
import json
import os
import pathlib
import resource
import sys
import tempfile
import unittest
from fractions import Fraction

import h5py
import numpy as np

from tool import FolderTest, hint_of, kill_runs, limited, run

LAST = ["rank", "r2", "condition", "status"]


def write(name, text):
    pathlib.Path(name).write_text(text, encoding="utf-8", newline="")


def write_table(name, columns):
    """`columns`: names and their numbers, or texts."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values()):
        writer.writerow([field if isinstance(field, str) else
                         "" if np.isnan(field) else repr(float(field)) for field in row])
    write(name, out.getvalue())


def rows_of(name):
    with open(name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def numbers(rows, names):
    return np.array([[float(row[name]) for name in names] for row in rows]).reshape(-1, len(names))


def windows_of(keys, window):
    """The rows of the window of each row; all of a group up to it for a window of 0."""
    seen = {}
    for row, key in enumerate(keys):
        seen.setdefault(key, []).append(row)
        yield np.array(seen[key][-window:])


class Reference:
    """What NumPy says of one window: x, its standard errors, R^2; None where it says nothing."""

    def __init__(self, a, b, w, has_ones):
        root = np.sqrt(w)
        aw, bw = a * root[:, None], b * root
        sizes = np.linalg.norm(aw, axis=0)
        sizes[sizes == 0] = 1
        _, sigma, v = np.linalg.svd(aw / sizes, full_matrices=False)
        n, self.rows = a.shape[1], len(b)
        self.condition = sigma[0] / sigma[-1] if sigma[-1] > 0 else np.inf
        scaled = np.linalg.lstsq(aw / sizes, bw, rcond=1e-14)[0]
        self.x, self.sizes = scaled / sizes, sizes
        self.fit = a @ self.x
        r = (b - self.fit) * root
        self.norm = np.linalg.norm(bw)
        self.se = np.full(n, np.nan)
        if self.rows > n and self.condition < 1e12:
            inverse = ((v.T / sigma) ** 2).sum(1)
            self.se = np.sqrt(inverse * (r @ r) / (self.rows - n)) / sizes
        mean = w @ b / w.sum() if has_ones else 0
        total = w @ (b - mean) ** 2
        self.r2 = 1 - r @ r / total if total > 1e-20 * self.norm ** 2 else np.nan


def exact(a, b):
    """The least-squares solution of the numbers as they are, rounded once."""
    rows = [[Fraction(x) for x in row] for row in np.column_stack([a, b]).tolist()]
    n = a.shape[1]
    g = [[sum(row[i] * row[j] for row in rows) for j in range(n + 1)] for i in range(n)]
    for i in range(n):
        g[i] = [x / g[i][i] for x in g[i]]
        for k in range(n):
            if k != i:
                g[k] = [x - g[k][i] * y for x, y in zip(g[k], g[i])]
    return np.array([float(row[n]) for row in g])


def random_columns(random, m, n):
    """Columns as they are met: noise, prices far from 0, trends, indicators, near dependencies."""
    a = random.standard_normal((m, n))
    kind = random.choice(["noise", "offset", "trend", "graded", "indicator", "near"])
    if kind == "offset":
        a += 10.0 ** random.integers(1, 7)
    elif kind == "trend":
        a[:, 0] = np.arange(m) + 2000
    elif kind == "graded":
        a *= 10.0 ** random.integers(-8, 9, n)
    elif kind == "indicator":
        a[:, 0] = random.random(m) < 0.3
    elif kind == "near" and n > 1:
        a[:, 1] = a[:, 0] + 10.0 ** -random.integers(1, 7) * random.standard_normal(m)
    return a


class Problem:
    """A random table with options, and the check of what the program says."""

    def __init__(self, random):
        self.m, n = int(random.integers(1, 90)), int(random.integers(1, 6))
        self.intercept = bool(random.random() < 0.5)
        terms = n + self.intercept
        self.window = int(random.integers(terms, terms + 40))
        self.least = int(random.integers(terms, self.window + 1))
        self.expands = bool(random.random() < 0.3)
        self.keys = [f"k{i}" for i in random.integers(0, random.integers(1, 6), self.m)]
        if random.random() < 0.3:
            self.keys.sort()
        self.a = random_columns(random, self.m, n)
        self.b = self.a @ random.standard_normal(n) + random.standard_normal(self.m) * \
            10.0 ** random.integers(-3, 2)
        self.w = random.uniform(0.1, 3, self.m) if random.random() < 0.3 else None
        if self.w is not None:
            self.w[random.random(self.m) < 0.1] = 0
        self.skips = bool(random.random() < 0.4)
        if self.skips:
            self.a[1:][random.random(self.m - 1) < 0.1, 0] = np.nan
            self.b[1:][random.random(self.m - 1) < 0.1] = np.nan
        self.by = bool(random.random() < 0.6)
        self.names = [f"x{j}" for j in range(n)]

    def options(self):
        more = ["--window", "expanding" if self.expands else str(self.window)]
        if self.least < self.window or self.expands:
            more += ["--min-rows", str(self.least)]
        if self.by:
            more += ["--by", "g"]
        if self.w is not None:
            more += ["--weights", "w"]
        if self.skips:
            more += ["--missing", "skip"]
        return more + (["--intercept"] if self.intercept else [])

    def run(self):
        columns = {"g": self.keys, **dict(zip(self.names, self.a.T)), "y": self.b}
        if self.w is not None:
            columns["w"] = self.w
        write_table("t.csv", columns)
        run("solve", "t.csv", "o.csv", "-f", "-q", "--response", "y", "--a", ",".join(self.names),
            "--fitted", "--residuals", *self.options())
        return rows_of("o.csv")

    def check(self, rows):
        """Returns the number of windows with an x."""
        fitted = np.loadtxt("o.fitted.csv", skiprows=1, ndmin=1)
        residuals = np.loadtxt("o.residuals.csv", skiprows=1, ndmin=1)
        keys = self.keys if self.by else [""] * self.m
        design = np.column_stack([np.ones(self.m), self.a]) if self.intercept else self.a
        weights = np.ones(self.m) if self.w is None else self.w
        names = (["(intercept)"] if self.intercept else []) + self.names
        counts = ~np.isnan(self.a).any(1) & ~np.isnan(self.b) & (weights > 0)
        x, se = numbers(rows, names), numbers(rows, [f"se_{n}" for n in names]) \
            if self.expands or self.window > len(names) else None
        assert len(rows) == self.m
        solved = 0
        for i, chosen in enumerate(windows_of(keys, 0 if self.expands else self.window)):
            row, used = rows[i], chosen[counts[chosen]]
            assert not self.by or row["g"] == keys[i]
            assert int(row["n"]) == len(used), (i, row)
            if len(used) < self.least:
                assert row["status"] == "too_few_rows" and np.isnan(x[i]).all(), (i, row)
                assert np.isnan(fitted[i])
                continue
            solved += 1
            self.check_window(i, row, Reference(design[used], self.b[used], weights[used],
                                                self.intercept), x[i], se, design[used])
            wanted = design[i] @ x[i]
            np.testing.assert_allclose(fitted[i], wanted, rtol=1e-9,
                                       atol=1e-9 * np.abs(design[i] * x[i]).sum())
            np.testing.assert_array_equal(residuals[i], self.b[i] - fitted[i])
        return solved

    @staticmethod
    def check_window(i, row, wanted, x, se, design):
        assert row["status"] in ("ok", "singular"), (i, row)
        apart = np.linalg.norm(design @ x - wanted.fit)
        assert apart <= 1e-9 * max(wanted.norm, np.linalg.norm(wanted.x * wanted.sizes)), (i, row)
        if wanted.condition > 1e9:
            return
        assert row["status"] == "ok" and int(row["rank"]) == len(x), (i, row)
        error = np.linalg.norm((x - wanted.x) * wanted.sizes)
        size = np.linalg.norm(wanted.x * wanted.sizes) + wanted.norm
        assert error <= 1e-14 * wanted.condition * (10 + wanted.condition * 1e-3) * size, (i, row)
        if np.linalg.norm(wanted.fit) < 1e6 * wanted.norm and wanted.rows > len(x) and \
                wanted.condition < 1e6 and se is not None and not np.isnan(wanted.r2):
            assert abs(float(row["r2"]) - wanted.r2) < 1e-7, (i, row, wanted.r2)
            if 1 - wanted.r2 > 1e-9:
                np.testing.assert_allclose(se[i], wanted.se, rtol=1e-4)


def solve_problems(count, seed):
    solved = 0
    for number in range(count):
        problem = Problem(np.random.default_rng([seed, number]))
        try:
            solved += problem.check(problem.run())
        except AssertionError:
            print(f"problem {number} of seed {seed}: {problem.options()}")
            raise
    return solved


class Window(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(3)

    def series(self, m=300, n=3):
        a = self.random.standard_normal((m, n))
        b = a @ np.arange(1, n + 1) + 0.1 * self.random.standard_normal(m)
        write_table("t.csv", {**{f"x{j}": a[:, j] for j in range(n)}, "y": b})
        np.save("a.npy", a)
        np.save("b.npy", b)
        return a, b

    def test_random_problems_agree_with_numpy(self):
        self.assertGreater(solve_problems(60, 1), 500)

    def test_rolling_ols_of_statsmodels(self):
        try:
            from statsmodels.regression.rolling import RollingOLS
        except ImportError:
            self.skipTest("statsmodels is missing")
        a, b = self.series()
        b[::17] = np.nan
        columns = {f"x{j}": a[:, j] for j in range(3)}
        write_table("t.csv", {**columns, "y": b})
        run("solve", "t.csv", "o.csv", "--response", "y", "--window", "40", "--min-rows", "12",
            "--missing", "skip", "--intercept")
        rows = rows_of("o.csv")
        fit = RollingOLS(b, np.column_stack([np.ones(300), a]), window=40, min_nobs=12,
                         missing="drop", expanding=True).fit()
        names = ["(intercept)", "x0", "x1", "x2"]
        x = numbers(rows, names)
        first = np.flatnonzero(~np.isnan(fit.params).any(1))[0]
        np.testing.assert_array_equal(np.isnan(x).all(1), np.arange(300) < first)
        np.testing.assert_allclose(x[first:], fit.params[first:], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(numbers(rows, ["r2"])[first:, 0], fit.rsquared[first:],
                                   rtol=1e-9)
        np.testing.assert_allclose(numbers(rows, [f"se_{n}" for n in names])[40:], fit.bse[40:],
                                   rtol=1e-8)

    def test_arrays(self):
        a, b = self.series()
        run("solve", "t.csv", "o.csv", "--response", "y", "--window", "20", "--fitted",
            "--residuals")
        rows = rows_of("o.csv")
        x = numbers(rows, ["x0", "x1", "x2"])
        for out in ("o.h5", "o.npz"):
            run("solve", "a.npy", "b.npy", out, "--window", "20", "--fitted", "--residuals")
        with h5py.File("o.h5") as file:
            np.testing.assert_array_equal(file["X"][:], x)
            self.assertEqual(file["X"].shape, (300, 3))
            np.testing.assert_array_equal(file["se"][:], numbers(rows, [f"se_x{j}" for j in
                                                                        range(3)]))
            self.assertEqual(file["fitted"].shape, (300,))
            np.testing.assert_array_equal(file["fitted"][:],
                                          np.loadtxt("o.fitted.csv", skiprows=1))
            np.testing.assert_array_equal(file["residuals"][:], b - file["fitted"][:])
            status = file["report/status"][:]
            np.testing.assert_array_equal(status, [5] * 19 + [0] * 281)
            np.testing.assert_array_equal(file["report/r_squared"][:],
                                          numbers(rows, ["r2"])[:, 0])
            self.assertEqual(file.attrs["window"], "20")
        with np.load("o.npz") as file:
            np.testing.assert_array_equal(file["X"], x)
        # Several right sides: a matrix for each row.
        both = np.column_stack([b, a[:, 0] - 2 * a[:, 1]])
        np.save("b2.npy", both)
        run("solve", "a.npy", "b2.npy", "o2.h5", "--window", "20", "--fitted")
        with h5py.File("o2.h5") as file:
            self.assertEqual(file["X"].shape, (300, 3, 2))
            np.testing.assert_array_equal(file["X"][:, :, 0], x)
            self.assertEqual(file["fitted"].shape, (300, 2))
            self.assertEqual(file["report/status"].shape, (300, 2))
            np.testing.assert_allclose(file["X"][19:, :, 1], np.tile([1, -2, 0], (281, 1)),
                                       atol=1e-12)
        said = run("verify", "a.npy", "b.npy", "o.h5", status=2).stderr
        self.assertIn("was made with --window 20", said)
        run(*hint_of(said).removeprefix("qrtool ").split(" shows")[0].split())

    def test_groups_of_arrays(self):
        a, b = self.series()
        keys = self.random.integers(0, 4, 300)
        np.save("g.npy", keys)
        run("solve", "a.npy", "b.npy", "o.csv", "--groups", "g.npy", "--window", "9")
        rows = rows_of("o.csv")
        self.assertEqual([int(row["group"]) for row in rows], list(keys))
        for i, chosen in enumerate(windows_of(keys, 9)):
            x = numbers([rows[i]], ["x1", "x2", "x3"])[0]
            if len(chosen) == 9:
                np.testing.assert_allclose(x, np.linalg.lstsq(a[chosen], b[chosen], rcond=None)[0],
                                           rtol=1e-9, atol=1e-10)
            else:
                self.assertTrue(np.isnan(x).all())

    def test_bits_depend_on_neither_memory_nor_threads_nor_other_groups(self):
        m = 20000
        keys = self.random.integers(0, 300, m)
        a = self.random.standard_normal((m, 3))
        b = a @ [1, 2, 3] + self.random.standard_normal(m)
        columns = {"x": a[:, 0], "u": a[:, 1], "v": a[:, 2], "y": b}
        write_table("t.csv", {"g": [f"k{key}" for key in keys], **columns})
        options = ["--response", "y", "--by", "g", "--window", "25", "--min-rows", "10"]
        run("solve", "t.csv", "o.csv", *options)
        whole = pathlib.Path("o.csv").read_bytes()
        for more in (["--memory", "2MiB"], ["--threads", "1"], ["--threads", "5"],
                     ["--memory", "4MiB", "--scratch", "."]):
            run("solve", "t.csv", "o.csv", "-f", *options, *more)
            self.assertEqual(pathlib.Path("o.csv").read_bytes(), whole, more)
        self.assertEqual(sorted(os.listdir(".")), ["o.csv", "t.csv"])
        one = keys == 7
        write_table("t.csv", {name: column[one] for name, column in columns.items()})
        run("solve", "t.csv", "p.csv", "--response", "y", "--window", "25", "--min-rows", "10")
        lines = [line for line in whole.splitlines()[1:] if line.startswith(b"k7,")]
        self.assertEqual(pathlib.Path("p.csv").read_bytes().splitlines()[1:],
                         [line.split(b",", 1)[1] for line in lines])

    def test_missing_rows_without_skip_spoil_their_windows_alone(self):
        a, b = self.series()
        run("solve", "t.csv", "o.csv", "--response", "y", "--window", "20")
        good = rows_of("o.csv")
        a[100, 1] = np.nan
        b[200] = np.inf
        write_table("t.csv", {"x0": a[:, 0], "x1": a[:, 1], "x2": a[:, 2], "y": b})
        said = run("solve", "t.csv", "o.csv", "-f", "--response", "y", "--window", "20",
                   status=1).stderr
        self.assertEqual(hint_of(said), "--missing skip leaves out the rows with NaN")
        for i, row in enumerate(rows_of("o.csv")):
            if 100 <= i < 120 or 200 <= i < 220:
                self.assertEqual(row["status"], "non_finite")
                self.assertEqual(row["x0"], "NaN")
            else:
                self.assertEqual(row, good[i])

    def test_long_windows_and_short_tables(self):
        a, b = self.series(m=3000)
        run("solve", "t.csv", "o.csv", "--response", "y", "--window", "2500")
        x = numbers(rows_of("o.csv"), ["x0", "x1", "x2"])
        self.assertTrue(np.isnan(x[:2499]).all())
        for i in (2499, 2700, 2999):
            chosen = slice(i - 2499, i + 1)
            np.testing.assert_allclose(x[i], np.linalg.lstsq(a[chosen], b[chosen], rcond=None)[0],
                                       rtol=1e-12)
        a, b = self.series(m=10)
        done = run("solve", "t.csv", "o.csv", "-f", "--response", "y", "--window", "1000000000000",
                   "--min-rows", "4")
        self.assertIn("7 of 10 pass, 3 NaN: too few rows", done.stdout)
        np.testing.assert_allclose(numbers(rows_of("o.csv"), ["x0", "x1", "x2"])[9],
                                   np.linalg.lstsq(a, b, rcond=None)[0], rtol=1e-9)
        run("solve", "t.csv", "o.csv", "-f", "--response", "y", "--window", "20")
        self.assertEqual({row["status"] for row in rows_of("o.csv")}, {"too_few_rows"})
        write("t.csv", "x,y\n1,2\n")
        run("solve", "t.csv", "o.csv", "-f", "--response", "y", "--window", "1")
        self.assertEqual(rows_of("o.csv")[0]["x"], "2")

    def test_polynomials_and_standard_streams(self):
        t = np.arange(50.0)
        b = 3 + 2 * t - 0.5 * t * t + self.random.standard_normal(50)
        write_table("t.csv", {"t": t, "y": b})
        run("solve", "t.csv", "o.csv", "--response", "y", "--window", "10", "--intercept",
            "--polynomial", "t:2")
        rows = rows_of("o.csv")
        self.assertEqual(list(rows[0]), ["n", "(intercept)", "t", "t^2", "se_(intercept)", "se_t",
                                         "se_t^2", *LAST])
        np.testing.assert_allclose(numbers(rows, ["t^2", "t", "(intercept)"])[30],
                                   np.polyfit(t[21:31], b[21:31], 2), rtol=1e-7)
        text = pathlib.Path("t.csv").read_text(encoding="utf-8")
        said = run("solve", "-", "-", "--response", "y", "--window", "10", "--intercept",
                   "--polynomial", "t:2", input=text)
        self.assertEqual(said.stdout, pathlib.Path("o.csv").read_text(encoding="utf-8"))

    def expanding(self, a, b, *options, status=0):
        np.save("a.npy", a)
        np.save("b.npy", b)
        run("solve", "a.npy", "b.npy", "o.h5", "-f", "--window", "expanding", *options,
            status=status)
        with h5py.File("o.h5") as file:
            return file["X"][:], file["se"][:], file["report/status"][:], \
                file["report/r_squared"][:]

    def test_expanding_windows(self):
        """Also with columns far from 0, whose moments cancel."""
        for offset in (0, 1e3, 1e6):
            a = self.random.standard_normal((5000, 3)) + offset
            a[:, 0] = 1
            b = a @ [1, 2, 3] + self.random.standard_normal(5000)
            x, se, status, r2 = self.expanding(a, b, "--fitted")
            np.testing.assert_array_equal(status, [5] * 2 + [0] * 4998)
            for i in (3, 10, 100, 999, 1000, 4999):
                wanted = Reference(a[:i + 1], b[:i + 1], np.ones(i + 1), False)
                right = exact(a[:i + 1], b[:i + 1])
                self.assertLessEqual(np.linalg.norm((x[i] - right) * wanted.sizes), 2.2e-16 * 90 *
                                     wanted.condition * np.linalg.norm(right * wanted.sizes))
                np.testing.assert_allclose(se[i], wanted.se, rtol=1e-13 * wanted.condition + 1e-9)
                np.testing.assert_allclose(r2[i], wanted.r2, rtol=1e-9)
            with h5py.File("o.h5") as file:
                self.assertLess(np.nanmax(file["report/backward_error"][:]), 2.2e-16 * 90)
                self.assertEqual(file.attrs["window"], "expanding")

    def test_expanding_windows_in_doubt(self):
        """Perfect fits, dependent columns, zeros, rows that end the numbers, and huge numbers."""
        a = self.random.standard_normal((300, 3))
        b = a @ [1.0, 2, 3]
        x, _, status, r2 = self.expanding(a, b)
        np.testing.assert_array_equal(status, [5] * 2 + [0] * 298)
        np.testing.assert_allclose(x[2:], np.tile([1, 2, 3], (298, 1)), rtol=1e-9)
        np.testing.assert_allclose(r2[3:], 1, rtol=1e-12)
        c = a.copy()
        c[:250, 2] = c[:250, 0] - c[:250, 1]
        x, _, status, _ = self.expanding(c, b)
        for i in range(2, 300):
            wanted = np.linalg.lstsq(c[:i + 1], b[:i + 1], rcond=1e-13)[0]
            np.testing.assert_allclose(x[i], wanted, rtol=1e-8, atol=1e-9)
        with h5py.File("o.h5") as file:
            np.testing.assert_array_equal(file["report/rank"][:], [-1] * 2 + [2] * 248 + [3] * 50)
        for scale in (1e-170, 1e170):
            x, _, status, _ = self.expanding(a * scale, b)
            np.testing.assert_allclose(x[2:] * scale, np.tile([1, 2, 3], (298, 1)), rtol=1e-9)
        b[200] = np.nan
        x, _, status, _ = self.expanding(a, b, status=1)
        np.testing.assert_array_equal(status, [5] * 2 + [0] * 198 + [2] * 100)
        self.assertTrue(np.isnan(x[200:]).all())
        x, _, status, _ = self.expanding(0 * a, a[:, 0])
        np.testing.assert_array_equal(x[2:], np.zeros((298, 3)))

    def hard_columns(self, m):
        """Columns that depend on others: always, for many rows, nearly, far from 0."""
        a = np.round(self.random.standard_normal((m, 3)) * 1024) / 1024
        changed = self.random.standard_normal(m)
        yield "constant", np.column_stack([np.ones(m), a[:, 0], np.full(m, 0.3)])
        late = a.copy()
        late[:m // 2, 2] = late[:m // 2, 0] - late[:m // 2, 1]
        yield "until half", late
        yield "offset", np.column_stack([np.ones(m), a[:, 0] + 1e6, a[:, 0] + 1e6 - 7])
        yield "near", np.column_stack([a[:, :2], a[:, 0] + 1e-9 * changed])
        yield "nearer", np.column_stack([a[:, :2], a[:, 0] + 1e-11 * changed])
        far = late + 1e6
        far[:m // 2, 2] = far[:m // 2, 0]
        yield "far until half", far

    def test_expanding_windows_of_dependent_columns_are_those_of_groups(self):
        """The same rank, and a fit that differs by the bar at most, from --by of the same rows."""
        m, at = 3000, np.array([2, 3, 4, 10, 40, 1499, 1500, 1510, 2000, 2999])
        for kind, a in self.hard_columns(m):
            b = self.random.standard_normal(m) + a[:, 1]
            x, _, status, _ = self.expanding(a, b)
            with h5py.File("o.h5") as file:
                rank, error = file["report/rank"][:], file["report/backward_error"][:]
            np.testing.assert_array_equal(status, [5] * 2 + [0] * (m - 2), kind)
            rows = np.concatenate([np.arange(i + 1) for i in at])
            np.save("a.npy", a[rows])
            np.save("b.npy", b[rows])
            np.save("g.npy", np.repeat(at, at + 1))
            run("solve", "a.npy", "b.npy", "p.csv", "-f", "--groups", "g.npy")
            for i, group in zip(at, rows_of("p.csv")):
                self.assertEqual(rank[i], int(group["rank"]), (kind, i))
                used, wanted = a[:i + 1], numbers([group], ["x1", "x2", "x3"])[0]
                size = np.linalg.norm(np.linalg.norm(used, axis=0) * wanted) + \
                    np.linalg.norm(b[:i + 1])
                bar = 2.2e-16 * max(16, min(i + 1, 90))
                self.assertLessEqual(np.linalg.norm(used @ (x[i] - wanted)), bar * size, (kind, i))
                self.assertLessEqual(error[i], bar, (kind, i))

    def test_expanding_windows_of_dependent_columns_take_no_more_time_with_more_rows(self):
        """Solved from all their rows they took 100 times the time of independent ones."""
        def seconds(a):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            self.expanding(a, b)
            return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

        b = self.random.standard_normal(10000)
        usual = seconds(self.random.standard_normal((10000, 3)))
        for kind, a in self.hard_columns(10000):
            self.assertLess(seconds(a), 10 * usual, kind)

    def test_expanding_bits_depend_on_neither_memory_nor_threads(self):
        m = 20000
        a = self.random.standard_normal((m, 3))
        write_table("t.csv", {"g": [f"k{key}" for key in self.random.integers(0, 9, m)],
                              "x": a[:, 0], "u": a[:, 1], "y": a[:, 2], "z": a[:, 0] + a[:, 2]})
        options = ["--response", "y,z", "--by", "g", "--window", "expanding"]
        run("solve", "t.csv", "o.csv", *options)
        whole = pathlib.Path("o.csv").read_bytes()
        for more in (["--memory", "3MiB"], ["--threads", "1"], ["--threads", "5"]):
            run("solve", "t.csv", "o.csv", "-f", *options, *more)
            self.assertEqual(pathlib.Path("o.csv").read_bytes(), whole, more)

    def test_what_is_said(self):
        self.series()
        done = run("solve", "t.csv", "o.csv", "--response", "y", "--window", "20")
        self.assertIn("solved windows of 20 rows in 300 rows, 3 columns", done.stdout)
        self.assertIn("19 of 300 solutions have too few rows for x, which is NaN (first: 0)\n",
                      done.stdout)
        self.assertIn("281 of 300 pass, 19 NaN: too few rows; wrote o.csv (300 rows)", done.stdout)
        said = json.loads(run("solve", "t.csv", "o.csv", "-f", "--json", "--response", "y",
                              "--window", "20", "--min-rows", "5").stdout)
        self.assertEqual(said["schema"], "qrtool.solve-window/1")
        self.assertEqual(said["window"], {"rows": 20, "min_rows": 5})
        self.assertEqual(said["check"]["status"]["too_few_rows"], 4)
        said = run("solve", "t.csv", "p.csv", "--dry-run", "--response", "y", "--window", "20")
        self.assertIn("windows of 20 rows in 1 groups of 300 to 300 rows, 3 columns", said.stdout)
        self.assertFalse(os.path.exists("p.csv"))

    def test_a_full_disk_and_a_kill_leave_what_was_there(self):
        random = np.random.default_rng(7)
        table = random.standard_normal((20000, 3))
        np.savetxt("t.csv", table, delimiter=",", header="t,u,y", comments="")
        for window in ("40", "expanding"):
            for out in ("o.h5", "o.csv"):
                with self.subTest(window=window, out=out):
                    line = ("solve", "t.csv", out, "--response", "y", "--window", window)
                    run(*line)
                    new = pathlib.Path(out).read_bytes()
                    write(out, "old")
                    for most in (0, 4096, 1 << 20):
                        run(*line, "-f", status=5, preexec_fn=limited(most))
                        self.assertEqual(pathlib.Path(out).read_bytes(), b"old")
                    self.assertGreater(kill_runs(
                        lambda: self.assertIn(pathlib.Path(out).read_bytes(), (b"old", new)),
                        *line, "-f"), 2)
                    os.remove(out)

    def test_the_dry_run_of_expanding_windows_does_not_take_them_for_whole_problems(self):
        for rows in (1000, 4000):
            np.savetxt(f"{rows}.csv", self.random.standard_normal((rows, 3)), delimiter=",",
                       header="t,u,y", comments="")
        seconds = [json.loads(run("solve", f"{rows}.csv", "o.csv", "--response", "y", "--window",
                                  "expanding", "--dry-run", "--json").stdout)
                   ["runs"][0]["seconds"]["compute"] for rows in (1000, 4000)]
        self.assertAlmostEqual(seconds[1] / seconds[0], 4)

    def refused(self, message, *args, status=2, hint=None, table="t.csv"):
        said = run("solve", table, "p.csv", "--response", "y", *args, status=status).stderr
        self.assertIn(message, said)
        if hint is not None:
            self.assertEqual(hint_of(said), hint)
        self.assertFalse(os.path.exists("p.csv"))

    def test_what_is_refused(self):
        self.series()
        self.refused("--window 2 is fewer rows than the 3 columns of A", "--window", "2",
                     hint="give 4 or more")
        self.refused("--min-rows 2 is fewer rows than the 3 columns of A", "--window", "9",
                     "--min-rows", "2")
        self.refused("--min-rows 10 is more than the 9 rows of --window", "--window", "9",
                     "--min-rows", "10", hint="give 9 or fewer")
        self.refused("--min-rows is for --window", "--min-rows", "9")
        self.refused("--window", "--window", "0")
        for more in (["--leverage"], ["--ridge", "1"], ["--least-norm"], ["--covariance"],
                     ["--confidence", "0.9"], ["--precision", "single"], ["--backend", "gpu"]):
            self.refused(f"--window contradicts {more[0]}", "--window", "9", *more)
        np.save("c.npy", np.ones((9, 2)) * (1 + 1j))
        said = run("solve", "c.npy", "c.npy:[:,0]", "p.h5", "--window", "5", status=2).stderr
        self.assertIn("--window", said)
        np.save("c.npy", np.ones((3, 9, 2)))
        np.save("d.npy", np.ones((3, 9)))
        said = run("solve", "c.npy", "d.npy", "p.h5", "--window", "5", status=3).stderr
        self.assertIn("--window divides the rows of one A", said)
        self.assertEqual(sorted(os.listdir(".")), ["a.npy", "b.npy", "c.npy", "d.npy", "t.csv"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("--problems", type=int)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.problems:
        with tempfile.TemporaryDirectory(prefix="qrtool-test-") as folder:
            os.chdir(folder)
            print(solve_problems(asked.problems, asked.seed), "windows agree")
            os.chdir("/")
    else:
        unittest.main(argv=sys.argv[:1])
