#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""matrices_test.py LIBRARY ROOT QRTOOL: matrices() gives what `qrtool generate` writes, and
verify() judges on them the factors of other programs."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

os.environ["QRTOOL_LIBRARY"] = sys.argv[1]
sys.path.insert(0, str(pathlib.Path(sys.argv[2]) / "app/python"))
import qrtool  # noqa: E402

TYPES = (np.float64, np.float32, np.complex128, np.complex64)


def generated(*options):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "a.npy"
        subprocess.run([sys.argv[3], "generate", *options, file, "--quiet"], check=True)
        return np.load(file)


class Matrices(unittest.TestCase):
    def test_they_are_those_of_the_command(self):
        self.assertGreater(len(qrtool.KINDS), 20)
        for number, kind in enumerate(qrtool.KINDS):
            dtype = np.dtype(TYPES[number % 4])
            options = ["--kind", kind, "--shape", "9x6x4", "--seed", str(number), "--precision",
                       "double" if dtype in TYPES[::2] else "single"]
            wanted = generated(*options, *(["--complex"] if dtype.kind == "c" else []))
            found = qrtool.matrices(kind, (9, 6, 4), dtype, number)
            self.assertEqual((found.dtype, found.tobytes()), (dtype, wanted.tobytes()), kind)
        double = "--precision", "double"
        wanted = generated("--kind", "graded-rows", "--shape", "2x3x6x4", "--cond", "1e3", *double)
        found = qrtool.matrices("graded-rows", (2, 3, 6, 4), cond=1e3)
        np.testing.assert_array_equal(found, wanted)
        many = "4200x32x32"  # which are made in several steps
        np.testing.assert_array_equal(qrtool.matrices("integers", (4200, 32, 32), np.float32),
                                      generated("--kind", "integers", "--shape", many))
        haar = qrtool.qr(qrtool.matrices("gauss", (5, 6, 4))).Q
        np.testing.assert_array_equal(haar,
                                      generated("--kind", "haar", "--shape", "5x6x4", *double))

    def test_every_build_makes_the_same(self):
        """Where a product and a sum are rounded at once, 80 of these entries have other bits."""
        gauss = qrtool.matrices("gauss", (1000, 300))
        found = qrtool.matrices("near-collinear", (1000, 300))
        np.testing.assert_array_equal(found, gauss[:, :1] + 1e-4 * gauss)

    def test_shapes(self):
        self.assertEqual(qrtool.matrices("contest", (4, 3)).shape, (4, 3))
        self.assertEqual(qrtool.matrices("cond", [2, 0, 3], "float32").shape, (2, 0, 3))
        self.assertEqual(qrtool.matrices("gauss", (0, 4, 3)).shape, (0, 4, 3))

    def test_wrong_calls_say_what_is_wrong(self):
        for arguments, word in (
                (("gaus", (4, 3)), "did you mean 'gauss'"), (("odd", (0, 4, 3)), "it may be gauss"),
                ((7, (4, 3)), "kind"), (("gauss", (4,)), "shape"), (("gauss", (4, -3)), "shape"),
                (("gauss", 4), "shape"), (("gauss", (4, 3), "float16"), "dtype"),
                (("gauss", (4, 3), "f8", -1), "seed"), (("gauss", (4, 3), "f8", 0.5), "seed"),
                (("gauss", (4, 3), "f8", 0, "cuda"), "device"),
                (("gauss", (4, 3), "f8", 0, None), "device")):
            with self.assertRaisesRegex(qrtool.CallError, word):
                qrtool.matrices(*arguments)
        with self.assertRaisesRegex(qrtool.CallError, "cond"):
            qrtool.matrices("cond", (4, 3), cond=0.5)
        with self.assertRaises(MemoryError):
            qrtool.matrices("gauss", (2**40, 2**10))


class Referee(unittest.TestCase):
    def test_good_factors_pass_on_every_kind(self):
        for kind in qrtool.KINDS:
            for dtype in TYPES:
                a = qrtool.matrices(kind, (8, 40, 12), dtype)
                self.assertTrue(qrtool.verify(a, *qrtool.qr(a)), kind)
                self.assertTrue(qrtool.verify(a, *np.linalg.qr(a)), kind)

    def test_what_passed_elsewhere_fails(self):
        a = qrtool.matrices("contest", (8, 40, 12), np.float32)
        q, r = np.linalg.qr(a)
        half = q.copy()
        half[:, :, -1] = half[:, :, 0]  # an orthogonality error of 1.4, where R's last row is 0
        for wrong in ((np.zeros_like(q), np.zeros_like(r)), (q, np.zeros_like(r)), (half, r),
                      (np.full_like(q, np.nan), r), (a, np.broadcast_to(np.eye(12, dtype="f4"),
                                                                       r.shape)),
                      (q @ q[:, :12], np.swapaxes(q[:, :12], 1, 2) @ r)):
            are_good, report = qrtool.verify(a, *wrong, report=True)
            self.assertFalse(are_good)
            self.assertTrue((report.status != 0).any())
        one = q.copy()
        one[5] *= 1.001
        report = qrtool.verify(a, one, r, report=True)[1]
        self.assertEqual(list(report.status), [0, 0, 0, 0, 0, 1, 0, 0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
