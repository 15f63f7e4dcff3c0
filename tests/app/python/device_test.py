#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""device_test.py LIBRARY ROOT LAYER: the Python package on the first OpenCL device. Its calls
fail, or copy wrong bits, where LAYER is told so."""
import os
import pathlib
import subprocess
import sys
import unittest

LIBRARY, ROOT, LAYER = sys.argv[1:4]
ENVIRONMENT = {**os.environ, "QRTOOL_LIBRARY": LIBRARY,
               "PYTHONPATH": str(pathlib.Path(ROOT) / "app/python")}
PROGRAM = """
import sys
import numpy as np
import qrtool
a = np.random.default_rng(3).standard_normal((50, 20, 12)).astype(np.float32)
try:
    for order in "CF":
        q, r = qrtool.qr(np.asarray(a, order=order), device="0")
        assert np.abs(q @ r - a).max() < 1e-5, order
except qrtool.DeviceError as error:
    sys.exit(str(error))
print("done")
"""


class Device(unittest.TestCase):
    def run_program(self, **layer):
        settings = {"OPENCL_LAYERS": LAYER, **layer} if layer else {}
        return subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True,
                              timeout=120, check=False, env={**ENVIRONMENT, **settings})

    def test_arrays_in_any_order_are_factored(self):
        done = self.run_program()
        self.assertEqual((done.stdout, done.stderr), ("done\n", ""))

    def test_a_wrong_bit_on_the_way_is_found(self):
        # Of the matrix in the middle, which the host does not measure again.
        middle = 8 * (25 * 20 * 12 * 4 + 101) + 3
        for call, nth, bit, text in (
                ("clEnqueueWriteBuffer", 1, middle, "A of matrix 25 of the chunk did not arrive"),
                ("clEnqueueReadBuffer", 1, middle, "Q of matrix 25 of the chunk did not come back"),
                ("clEnqueueReadBuffer", 2, 8 * (25 * 12 * 12 * 4 + 4),
                 "R of matrix 25 of the chunk did not come back")):
            done = self.run_program(QRTOOL_FLIP_CL=f"{call}:{nth}:{bit}")
            self.assertEqual(done.returncode, 1, (text, done.stdout, done.stderr))
            self.assertIn(text, done.stderr)

    def test_memory_that_cannot_be_locked_and_copies_that_fail(self):
        done = self.run_program(QRTOOL_FAIL_CL="clEnqueueMapBuffer:0:-4")
        self.assertEqual((done.stdout, done.stderr), ("done\n", ""))
        for call in ("clEnqueueWriteBuffer", "clEnqueueReadBuffer"):
            for nth in (1, 2):
                done = self.run_program(QRTOOL_FAIL_CL=f"{call}:{nth}:-4")
                self.assertEqual((done.stdout, done.stderr), ("done\n", ""), (call, nth))
                done = self.run_program(QRTOOL_FAIL_CL=f"{call}:{nth}:-36")
                self.assertEqual(done.returncode, 1, (call, nth, done.stdout, done.stderr))
                self.assertIn(call, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
