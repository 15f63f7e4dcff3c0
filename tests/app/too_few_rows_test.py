#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A right side whose rows do not determine x gets NaN and the status too_few_rows, on every route;
--least-norm gives it the x of least norm; `verify` counts the rows itself."""
import json
import sys
import unittest

import h5py
import numpy as np

from tool import FolderTest, has_device, run

HAS_DEVICE = has_device()


def write(name, **arrays):
    with h5py.File(name, "w") as file:
        for key, array in arrays.items():
            file[key] = array


def read(name, dataset="X"):
    with h5py.File(name) as file:
        return file[dataset][...]


class TooFewRows(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(11)

    def solve(self, *options):
        """X and the status of each right side; `verify` agrees with both."""
        done = run("solve", "a.h5", "b.h5", "x.h5", "-f", "--missing", "skip", *options)
        weights = options[options.index("--weights"):][:2] if "--weights" in options else ()
        run("verify", "a.h5", "b.h5", "x.h5", *weights)
        return read("x.h5"), read("x.h5", "report/status"), done

    def test_a_pixel_without_data(self):
        write("a.h5", A=np.vander(np.arange(30.0), 3, increasing=True))
        b = np.ones((30, 2))
        b[:, 1] = np.nan
        write("b.h5", b=b)
        x, status, done = self.solve("--rows", "matrix")
        self.assertTrue(np.isnan(x[:, 1]).all())
        self.assertEqual(status.tolist(), [0, 5])
        self.assertIn("1 of 2 solutions has too few rows for x, which is NaN", done.stdout)
        self.assertIn("1 of 2 pass, 1 NaN: too few rows", done.stdout)
        self.assertTrue(np.isnan(read("x.h5", "se")[:, 1]).all())
        self.assertEqual(read("x.h5", "report/rank").tolist(), [3, -1])
        with h5py.File("x.h5") as file:
            meanings = file["report/status"].attrs["flag_meanings"].split()
            self.assertEqual(meanings.index("too_few_rows"), 5)
        found = json.loads(run("solve", "a.h5", "b.h5", "x.h5", "-f", "--missing", "skip", "--rows",
                               "matrix", "--json").stdout)
        self.assertEqual(found["check"]["status"]["too_few_rows"], 1)
        self.assertEqual((found["check"]["failed"], found["exit"]), (0, 0))
        info = json.loads(run("info", "x.h5", "--json").stdout)["outputs"][0]
        self.assertEqual(info["status"]["too_few_rows"], 1)
        x, status, done = self.solve("--rows", "matrix", "--least-norm")
        np.testing.assert_array_equal(x[:, 1], 0)
        self.assertEqual(status.tolist(), [0, 0])
        self.assertIn("dependent columns (least rank 0): x is of least norm", done.stdout)

    def test_every_route(self):
        """One A for many or few, matrices of their own, packs of them, tall and by rows."""
        cases = [((20, 3), (20, 400)), ((20, 3), (20, 2)), ((400, 20, 3), (400, 20)),
                 ((3, 300, 140), (3, 300)), ((60000, 2), (60000, 3)), ((20, 3), (9, 20))]
        for shape, sides in cases:
            m, n = shape[-2:]
            axis = sides.index(m) if len(shape) == 2 else len(sides) - 1
            b = np.moveaxis(self.random.standard_normal(sides), axis, -1).copy()
            few = b.reshape(-1, m)[-2:]
            few[0, n - 1:] = np.nan  # one row less than columns
            few[1, :] = np.nan
            b[..., 2] = np.nan  # of all
            a = self.random.standard_normal(shape)
            write("a.h5", A=a)
            write("b.h5", b=np.moveaxis(b, -1, axis))
            expected = np.where((~np.isnan(b)).sum(axis=-1) < n, 5, 0)
            for backend in ("cpu", "opencl") if HAS_DEVICE else ("cpu",):
                x, status, _ = self.solve("--backend", backend)
                np.testing.assert_array_equal(status, expected, f"{shape} {backend}")
                x = x if len(shape) == 3 else np.moveaxis(x, axis, -1)
                np.testing.assert_array_equal(np.isnan(x).all(axis=-1), expected == 5)
                np.testing.assert_array_equal(np.isnan(x).any(axis=-1), expected == 5)
                x, status, _ = self.solve("--backend", backend, "--least-norm")
                self.assertTrue((status == 0).all() and np.isfinite(x).all())

    def test_weights_of_zero_and_rows_of_a(self):
        a, b = self.random.standard_normal((12, 4)), self.random.standard_normal((12, 50))
        weights = np.zeros(12)
        weights[:3] = 1
        write("a.h5", A=a)
        write("b.h5", b=b)
        write("w.h5", w=weights)
        x, status, _ = self.solve("--weights", "w.h5")
        self.assertTrue(np.isnan(x).all() and (status == 5).all())
        a[3:, 1] = np.nan
        write("a.h5", A=a)
        x, status, _ = self.solve()
        self.assertTrue(np.isnan(x).all() and (status == 5).all())

    def test_what_keeps_least_norm(self):
        a, b = self.random.standard_normal((20, 4)), self.random.standard_normal((20, 6))
        a[:, 3] = a[:, 0]
        b[4:, 1] = np.nan
        write("a.h5", A=a)
        write("b.h5", b=b)
        x, status, done = self.solve()
        self.assertTrue((status == 0).all())  # four rows of four columns, which are dependent
        np.testing.assert_allclose(x[:, 0], np.linalg.lstsq(a, b[:, 0], rcond=None)[0])
        self.assertIn("dependent columns (least rank 3): x is of least norm", done.stdout)
        write("a.h5", A=a[:3])
        b[1, 1] = np.nan
        b[:, 2] = np.nan  # no row at all
        write("b.h5", b=b[:3])
        x, status, done = self.solve()
        self.assertEqual(status.tolist(), [0, 0, 5, 0, 0, 0])
        keep = [0, 2]
        np.testing.assert_allclose(x[:, 1], np.linalg.lstsq(a[keep], b[keep, 1], rcond=None)[0])
        self.assertIn("A has fewer rows than columns: x is of least norm", done.stdout)

    def test_a_ridge_needs_one_row(self):
        for sides in (6, 200):
            a, b = self.random.standard_normal((20, 4)), self.random.standard_normal((20, sides))
            b[2:, 1] = np.nan
            b[:, 2] = np.nan
            write("a.h5", A=a)
            write("b.h5", b=b)
            for backend in ("cpu", "opencl") if HAS_DEVICE else ("cpu",):
                x, status, _ = self.solve("--ridge", "2", "--backend", backend)
                self.assertEqual(status[:3].tolist(), [0, 0, 5])
                two = np.linalg.solve(a[:2].T @ a[:2] + 2 * np.eye(4), a[:2].T @ b[:2, 1])
                np.testing.assert_allclose(x[:, 1], two)
                self.assertTrue(np.isnan(x[:, 2]).all())

    def test_verify_counts_the_rows(self):
        """NaN passes where the rows are too few, and only there; numbers do not."""
        for sides in ((20, 50), (20, 2)):
            b = self.random.standard_normal(sides)
            b[2:, 1] = np.nan
            write("a.h5", A=self.random.standard_normal((20, 4)))
            write("b.h5", b=b)
            self.solve("--rows", "matrix")
            good = read("x.h5")
            files = "a.h5", "b.h5", "y.h5", "--missing", "skip", "--rows", "matrix"
            write("y.h5", X=good)
            self.assertIn(f"{sides[1] - 1} of {sides[1]} pass, 1 NaN: too few rows",
                          run("verify", *files).stdout)
            bad = good.copy()
            bad[:, 0] = np.nan
            write("y.h5", X=bad)
            self.assertIn("solution 0 fails: it holds NaN", run("verify", *files, status=1).stdout)
            bad = good.copy()
            bad[:, 1] = 0
            write("y.h5", X=bad)
            self.assertIn("solution 1 fails: it holds numbers, and too few rows count",
                          run("verify", *files, status=1).stdout)
            run("verify", *files, "--least-norm", status=1)  # 0 is no solution

    def test_one_table_in_every_format(self):
        table = "a,b,y\n1,2,3\n2,1,\n3,5,\n"
        with open("t.csv", "w", encoding="utf-8") as file:
            file.write(table)
        for out in ("x.h5", "x.npz", "x.npy", "x.csv", "x.mtx"):
            done = run("solve", "t.csv", out, "--response", "y", "--missing", "skip", "-f")
            self.assertIn("too few rows", done.stdout)
            run("verify", "t.csv", out)
            run("solve", "t.csv", out, "--response", "y", "--missing", "skip", "-f", "--least-norm")
            run("verify", "t.csv", out)
        done = run("solve", "t.csv", "y.h5", "--response", "y", "--basic", "--least-norm", status=2)
        self.assertIn("contradict each other", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
