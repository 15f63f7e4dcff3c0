#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people who come from NumPy, SciPy, Octave, MATLAB or Julia ask first: each test is one
question, and what they are used to is the answer wherever NumPy and the others agree."""
import json
import sys
import unittest

import h5py
import numpy as np

from tool import FolderTest, said as qrtool



class FirstContact(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(11)

    def factors(self, a, *options, status=0):
        np.save("a.npy", a)
        self.said = qrtool("factor", "a.npy", "q.npz", "--force", *options, status=status)
        with np.load("q.npz") as file:
            return {name: file[name] for name in file.files}

    def test_default_shapes_are_reduced(self):
        a = self.random.standard_normal((6, 4))
        self.assertEqual([self.factors(a)[name].shape for name in "QR"], [(6, 4), (4, 4)])
        complete = self.factors(a, "--mode", "complete")
        self.assertEqual([complete[name].shape for name in "QR"], [(6, 6), (6, 4)])

    def test_modes_have_numpys_names_and_those_of_scipy_and_matlab_are_understood(self):
        a = self.random.standard_normal((6, 4))
        for name, same in (("economic", "reduced"), ("econ", "reduced"), ("full", "complete")):
            self.assertEqual(self.factors(a, "--mode", name)["Q"].shape,
                             self.factors(a, "--mode", same)["Q"].shape)
            self.assertEqual(json.loads(str(self.factors(a, "--mode", name)["qrtool"]))["mode"],
                             same)
        self.assertEqual(self.factors(a, "--mode", "r")["R"].shape, (4, 4))
        h, tau = np.linalg.qr(a, mode="raw")
        raw = self.factors(a, "--mode", "raw")
        np.testing.assert_allclose(raw["V"], h.T, atol=1e-14)
        np.testing.assert_allclose(raw["tau"], tau, atol=1e-14)
        self.assertIn("reduced, complete, r, raw",
                      qrtool("factor", "a.npy", "q.h5", "--mode", "thin", status=2))

    def test_batch_dimensions_are_kept(self):
        a = self.random.standard_normal((2, 3, 6, 4))
        out, (q, r) = self.factors(a, "--sign", "lapack"), np.linalg.qr(a)
        np.testing.assert_allclose(out["Q"], q, atol=1e-14)
        np.testing.assert_allclose(out["R"], r, atol=1e-14)
        self.assertEqual(out["report_residual"].shape, (2, 3))

    def test_sign_is_unique_or_lapacks(self):
        a = self.random.standard_normal((50, 6, 4))
        q, r = np.linalg.qr(a)
        self.assertTrue((np.diagonal(r, axis1=1, axis2=2) < 0).any())
        np.testing.assert_allclose(self.factors(a, "--sign", "lapack")["Q"], q, atol=1e-13)
        self.assertTrue((np.diagonal(self.factors(a)["R"], axis1=1, axis2=2) >= 0).all())

    def test_types_are_kept(self):
        a = self.random.standard_normal((6, 4)) * 9
        for kind, expected in (("f4", "f4"), ("f8", "f8"), ("f2", "f4"), ("i1", "f8"), ("i4", "f8"),
                               ("u8", "f8")):
            out = self.factors(np.abs(a).astype(kind))
            self.assertEqual((out["Q"].dtype, out["R"].dtype), (np.dtype(expected),) * 2, kind)
        for kind, precision, expected in (("f4", "double", "f8"), ("f8", "single", "f4"),
                                          ("f8", "input", "f8"), ("f4", "input", "f4")):
            out = self.factors(a.astype(kind), "--precision", precision)
            self.assertEqual(out["Q"].dtype, np.dtype(expected), (kind, precision))
            qrtool("verify", "a.npy", "q.npz")
        large = np.array([[2**24 + 1, 1], [1, 2**24 + 3]])  # no float32 holds them
        out = self.factors(large)
        np.testing.assert_allclose(out["Q"] @ out["R"], large, rtol=1e-15)

    def test_a_bad_matrix_stays_alone(self):
        a = self.random.standard_normal((8, 6, 4))
        alone = self.factors(a)
        a[2, 2, 3], a[5, 0, 0] = np.nan, -np.inf
        out = self.factors(a, status=1)
        self.assertIn("a.npy: 2 of 8 matrices contain NaN or Inf (first: 2); "
                      "their Q and R are NaN\n", self.said)
        bad = np.isin(np.arange(8), (2, 5))
        np.testing.assert_array_equal(out["report_status"], np.where(bad, 2, 0))
        for name in "QR":
            self.assertTrue(np.isnan(out[name][bad]).all())
            np.testing.assert_array_equal(out[name][~bad], alone[name][~bad])

    def test_empty_shapes_are_numpys(self):
        for shape in ((0, 3), (3, 0), (0, 6, 4), (2, 0, 3)):
            out, (q, r) = self.factors(np.zeros(shape)), np.linalg.qr(np.zeros(shape))
            self.assertEqual((out["Q"].shape, out["R"].shape), (q.shape, r.shape))

    def test_wide_matrices(self):
        a = self.random.standard_normal((4, 6))
        out, (q, r) = self.factors(a, "--sign", "lapack"), np.linalg.qr(a)
        self.assertEqual((q.shape, r.shape), ((4, 4), (4, 6)))
        np.testing.assert_allclose(out["Q"], q, atol=1e-14)
        np.testing.assert_allclose(out["R"], r, atol=1e-14)

    def test_rank_deficiency_passes_and_is_seen(self):
        a = self.random.standard_normal((2, 6, 4))
        a[1, :, 3] = a[1, :, 0] + a[1, :, 1]
        out = self.factors(a)
        self.assertEqual(list(out["report_status"]), [0, 0])
        np.testing.assert_allclose(np.swapaxes(out["Q"], 1, 2) @ out["Q"], [np.eye(4)] * 2,
                                   atol=1e-14)
        full, deficient = out["report_diagonal_ratio"]
        self.assertGreater(full, 1e-3)
        self.assertLess(deficient, 6 * 2.0**-52)

    def test_complex_is_factored_and_solved(self):
        a = np.ones((6, 4), complex)
        np.save("c.npy", a)
        with h5py.File("c.h5", "w") as file:
            file["A"] = a
        with open("c.csv", "w", encoding="utf-8") as file:
            file.write("1+2i,3\n4,5\n")
        for name in ("c.npy", "c.h5", "c.csv"):
            qrtool("factor", name, "q.h5", "-f")
            qrtool("solve", name, name, "x.h5", "-f", "--rows", "matrix")

    def test_where_the_results_are(self):
        a = self.random.standard_normal((3, 6, 4))
        np.save("a.npy", a)
        self.assertIn("wrote q.h5 (/Q 3x6x4, /R 3x4x4, /report)", qrtool("factor", "a.npy", "q.h5"))
        self.assertIn("wrote q.Q.npy, q.R.npy, q.report.json", qrtool("factor", "a.npy", "q.npy"))
        self.assertIn("wrote q.npz (Q 3x6x4, R 3x4x4, report_residual, ...)",
                      qrtool("factor", "a.npy", "q.npz"))
        self.assertIn("wrote r.h5 (/R 3x4x4, /report)",
                      qrtool("factor", "a.npy", "r.h5", "--mode", "r"))
        with h5py.File("q.h5") as file:
            self.assertEqual(sorted(file), ["Q", "R", "report"])
            np.testing.assert_array_equal(file["Q"][:], np.load("q.Q.npy"))
        qrtool("factor", "a.npy", "p.h5", "--report", "r.csv")
        with open("r.csv", encoding="ascii") as file:
            self.assertEqual(len(file.readlines()), 4)
        qrtool("factor", "a.npy", "p.h5", "-f", "--report", "r.txt", status=2)

    def test_verify_says_yes_or_no(self):
        a = self.random.standard_normal((3, 6, 4))
        self.factors(a)
        self.assertIn(" pass\n", qrtool("verify", "a.npy", "q.npz"))
        np.save("b.npy", a[::-1])
        self.assertIn("1 of 3 pass", qrtool("verify", "b.npy", "q.npz", status=1))

    def test_the_summary_says_how_good_it_is(self):
        self.factors(self.random.standard_normal((3, 6, 4)))
        self.assertRegex(self.said, r"worst residual \S+ \(0\.\d+ of its bar, matrix \d\), "
                                    r"orthogonality \S+ \(0\.\d+, matrix \d\), lower 0\n")
        self.assertIn("all 3 pass", self.said)

    def test_a_matrix_that_seems_transposed_gets_a_note(self):
        a = self.random.standard_normal((30, 5))
        with h5py.File("m.h5", "w") as file:
            file["a"] = a.T  # as h5write of MATLAB and Julia stores a
        self.assertIn("/a is read as 5x30", qrtool("factor", "m.h5", "q.h5"))
        for options in (("-q",), ("--order", "row"), ("--order", "column")):
            self.assertNotIn("note", qrtool("factor", "m.h5", "q.h5", "--force", *options))
        with h5py.File("q.h5") as file:
            np.testing.assert_allclose(file["Q"][:].T @ file["R"][:].T, a, atol=1e-13)
            self.assertEqual(str(np.asarray(file.attrs["order"]).astype(str)), "column")
        with h5py.File("tall.h5", "w") as file:
            file["a"] = a
        self.assertNotIn("note", qrtool("factor", "tall.h5", "t.h5"))
        # What the program wrote records its order.
        qrtool("generate", "--shape", "3x7", "g.h5")
        qrtool("factor", "g.h5", "w.h5")
        self.assertNotIn("note", qrtool("factor", "g.h5", "w.h5", "--force"))
        self.assertNotIn("note", qrtool("factor", "w.h5:/R", "r.h5"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
