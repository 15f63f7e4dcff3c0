#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrtool solve --covariance` gives sigma^2 (A'A)^-1 on every route and in every format, and NaN
where there is none."""
import os
import sys
import unittest

import h5py
import numpy as np

from tool import FolderTest, said



class Covariance(FolderTest):
    run_tool = staticmethod(said)

    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(11)

    def solve(self, *options, status=0, **arrays):
        """The solutions, their standard errors and covariances, and the text."""
        with h5py.File("in.h5", "w") as file:
            for name, array in arrays.items():
                file[name] = array
        said = self.run_tool("solve", "in.h5:/A", "in.h5:/b", "x.h5", "-f", "--covariance",
                             *options, status=status)
        self.run_tool("verify", "in.h5:/A", "in.h5:/b", "x.h5",
                      *[each for each in options if "--weights" in options], status=status)
        with h5py.File("x.h5") as file:
            return file["X"][...], file["se"][...], file["covariance"][...], said

    def expect(self, a, b, w, found, rtol):
        """One right side against the formula."""
        kept = np.isfinite(b) & np.isfinite(a).all(axis=1) & (w > 0)
        a, b, root = a[kept].astype(float), b[kept].astype(float), np.sqrt(w[kept])
        a, b = a * root[:, None], b * root
        x = np.linalg.lstsq(a, b, rcond=None)[0]
        freedom = len(b) - a.shape[1]
        wanted = np.linalg.inv(a.T @ a) * np.sum((b - a @ x) ** 2) / freedom
        size = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
        np.testing.assert_allclose(found / size, wanted / size, atol=rtol)

    def test_each_matrix_has_its_own(self):
        # In packs, in whole chunks, and beyond the packs.
        for shape in ((50, 12, 4), (3, 40, 30), (2, 300, 120), (2, 5000, 3)):
            for kind, rtol in (("f4", 1e-4), ("f8", 1e-9)):
                for p in ((), (2,)):
                    a = self.random.standard_normal(shape).astype(kind)
                    b = self.random.standard_normal(shape[:2] + p).astype(kind)
                    _, se, covariance, _ = self.solve(A=a, b=b)
                    self.assertEqual(covariance.dtype, kind)
                    np.testing.assert_array_equal(covariance, np.swapaxes(covariance, -1, -2))
                    self.assertEqual(covariance.shape, (shape[0], *p, shape[2], shape[2]))
                    for index in np.ndindex(covariance.shape[:-2]):
                        right = b[index[0]] if not p else b[index[0], :, index[1]]
                        self.expect(a[index[0]], right, np.ones(shape[1]), covariance[index], rtol)
                        errors = se[index[0]] if not p else se[index[0], :, index[1]]
                        np.testing.assert_allclose(np.diag(covariance[index]),
                                                   errors.astype(float) ** 2, rtol=1e-6)

    def test_one_matrix_for_all(self):
        a = self.random.standard_normal((20, 3))
        for b in (self.random.standard_normal((20, 50)), self.random.standard_normal((5, 8, 20)),
                  self.random.standard_normal((20, 2, 3))):
            options = ["--rows", "last"] if b.shape[0] == 5 else ["--rows", "first"]
            _, _, covariance, _ = self.solve(*options, A=a, b=b)
            sides = np.moveaxis(b, -1 if b.shape[0] == 5 else 0, -1)
            self.assertEqual(covariance.shape, sides.shape[:-1] + (3, 3))
            for index in np.ndindex(sides.shape[:-1]):
                self.expect(a, sides[index], np.ones(20), covariance[index], 1e-9)

    def test_missing_rows_and_weights(self):
        a, b = self.random.standard_normal((25, 4)), self.random.standard_normal((60, 25))
        b[self.random.random(b.shape) < 0.3] = np.nan
        b[7, 4:] = np.nan
        with h5py.File("w.h5", "w") as file:
            w = file["w"] = self.random.uniform(0, 2, 25)
        for options in (["--missing", "skip"], ["--missing", "skip", "--weights", "w.h5"]):
            _, _, covariance, _ = self.solve(*options, A=a, b=b)
            weights = w if len(options) > 2 else np.ones(25)
            self.assertTrue(np.isnan(covariance[7]).all())
            for i in (0, 3, 30, 59):
                self.expect(a, b[i], weights, covariance[i], 1e-9)

    def test_a_tall_system(self):
        a, b = self.random.standard_normal((60000, 5)), self.random.standard_normal(60000)
        _, _, covariance, _ = self.solve(A=a, b=b)
        self.expect(a, b, np.ones(60000), covariance, 1e-9)

    def test_there_is_none_without_full_rank(self):
        a, b = self.random.standard_normal((3, 9, 3)), self.random.standard_normal((3, 9))
        a[1, :, 2] = a[1, :, 0]
        b[2, 3] = np.nan
        _, _, covariance, _ = self.solve(A=a, b=b, status=1)
        self.assertTrue(np.isfinite(covariance[0]).all() and np.isnan(covariance[1:]).all())

    def test_every_format(self):
        a, b = self.random.standard_normal((12, 4)), self.random.standard_normal(12)
        _, _, covariance, _ = self.solve(A=a, b=b)
        for ending in ("npz", "csv", "mtx", "npy"):
            self.run_tool("solve", "in.h5:/A", "in.h5:/b", f"o.{ending}", "--covariance", "-f")
            self.run_tool("verify", "in.h5:/A", "in.h5:/b", f"o.{ending}")
        np.testing.assert_array_equal(np.load("o.npz")["covariance"], covariance)
        np.testing.assert_array_equal(np.load("o.covariance.npy"), covariance)
        np.testing.assert_array_equal(np.loadtxt("o.covariance.csv", delimiter=","), covariance)
        with open("o.covariance.mtx", encoding="utf-8") as file:
            self.assertEqual(file.read().split()[5:7], ["4", "4"])
        self.run_tool("solve", "in.h5:/A", "in.h5:/b", "o.csv", "-f")
        self.assertFalse(os.path.exists("o.covariance.csv"))

    def test_what_contradicts_it_is_refused(self):
        a, b = self.random.standard_normal((4, 4)), self.random.standard_normal(4)
        with h5py.File("in.h5", "w") as file:
            file["A"], file["b"] = a, b
        command = ("solve", "in.h5:/A", "in.h5:/b", "x.h5", "--covariance")
        self.assertIn("more rows than columns", self.run_tool(*command, status=3))
        self.assertIn("biased", self.run_tool(*command, "--ridge", "1", status=2))
        self.assertIn("contradict", self.run_tool(*command, "--no-se", status=2))
        self.assertFalse(os.path.exists("x.h5"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
