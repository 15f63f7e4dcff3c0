#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a Python user sees: h5py reads our files, NumPy agrees in float64, and verify notices
changes."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

QRTOOL, ROOT = sys.argv[1], sys.argv[2]
STATUS = {"ok": 0, "above_bar": 1, "non_finite": 2, "r_overflows": 3, "unchecked": 4}
DIGITS = os.path.join(ROOT, "samples/digits.h5")


def qrtool(*args, status=0):
    done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, (args, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="qrtool-h5py-")
        self.q = os.path.join(self.folder, "q.h5")
        self.a = os.path.join(self.folder, "a.h5")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def write(self, array, name="A", **options):
        with h5py.File(self.a, "w") as file:
            file.create_dataset(name, data=array, **options)
        return array

    def test_report_agrees_with_float64(self):
        qrtool("factor", DIGITS + ":/images", self.q)
        with h5py.File(DIGITS) as file:
            a = file["images"][:].astype(np.float64)
        with h5py.File(self.q) as file:
            q, r = file["Q"][:].astype(np.float64), file["R"][:].astype(np.float64)
            report = {name: file["report"][name][:] for name in file["report"]}
            self.assertEqual(file.attrs["format"], "qrtool")
            self.assertEqual(file.attrs["eps"], 2.0**-23)
        norm = np.linalg.norm(a, axis=(1, 2))
        residual = np.linalg.norm(a - q @ r, axis=(1, 2)) / norm
        orthogonality = np.linalg.norm(np.swapaxes(q, 1, 2) @ q - np.eye(8), axis=(1, 2))
        np.testing.assert_allclose(report["residual"], residual, rtol=1e-6, atol=1e-15)
        np.testing.assert_allclose(report["orthogonality"], orthogonality, rtol=1e-6, atol=1e-15)
        self.assertTrue((residual <= 16 * 2.0**-23).all())
        self.assertTrue((orthogonality <= 16 * 2.0**-23).all())
        self.assertTrue((report["status"] == 0).all())
        self.assertTrue((np.tril(r, -1) == 0).all())
        self.assertTrue((np.diagonal(r, axis1=1, axis2=2) >= 0).all())
        self.assertEqual(report["status"].dtype, np.uint8)
        self.assertEqual(report["scale"].dtype, np.int32)
        self.assertEqual(report["tries"].dtype, np.uint8)
        self.assertTrue((report["tries"][:] == 1).all())

    def test_the_report_explains_itself(self):
        qrtool("factor", DIGITS + ":/images", self.q)
        with h5py.File(self.q) as file:
            for name in ("sign", "mode", "order", "source_dataset"):
                self.assertIsInstance(file.attrs[name], str)
            self.assertEqual((file.attrs["sign"], file.attrs["source_dataset"]),
                             ("positive", "/images"))
            report = file["report"]
            for name in report:
                said = dict(report[name].attrs)
                meanings = said.pop("flag_meanings", None)
                self.assertEqual(meanings, " ".join(STATUS) if name == "status" else None)
                self.assertEqual(set(said), {"description", "formula", "unit", "bar",
                                             "bar_formula"})
                self.assertTrue(all(isinstance(said[key], str) and said[key] for key in set(said) -
                                    {"bar"}), said)
            bars = {name: report[name].attrs["bar"] for name in report}
            u = file.attrs["eps"]
            self.assertEqual([bars[name] for name in ("residual", "orthogonality", "lower")],
                             [16 * u, 16 * u, 8 * u])
            for name in ("status", "scale", "tries", "diagonal_ratio"):
                self.assertTrue(np.isnan(bars[name]))
            self.assertTrue((report["residual"][:] <= bars["residual"]).all())
            self.assertEqual(report["status"].dtype, np.uint8)
            self.assertIsNone(h5py.check_enum_dtype(report["status"].dtype))
        qrtool("factor", DIGITS + ":/images", self.q, "--force", "--mode", "r")
        with h5py.File(self.q) as file:
            self.assertIn("A'A - R'R", file["report/residual"].attrs["formula"])
            self.assertTrue(np.isnan(file["report/orthogonality"].attrs["bar"]))

    def test_a_text_that_the_tool_does_not_write_is_refused(self):
        # HDF5 keeps no checksum of texts.
        self.write(np.random.default_rng(7).standard_normal((2, 5, 3)))
        for name, damaged in (("format", "qrtoom"), ("format_version", "7.1"), ("order", "rov"),
                              ("mode", "seduced"),
                              ("precision", "doubld"), ("sign", ""), ("order", 1)):
            qrtool("factor", self.a, self.q, "--force")
            qrtool("verify", self.a, self.q)
            with h5py.File(self.q, "r+") as file:
                file.attrs[name] = damaged
            said = qrtool("verify", self.a, self.q, status=3)
            self.assertIn(f"its attribute {name} is '{damaged if damaged != 1 else ''}', not one "
                          f"of ", said)

    def test_damaged_texts_do_not_stop_the_library(self):
        # HDF5 goes round and round in a heap of texts where an object states the size 0.
        self.write(np.random.default_rng(8).standard_normal((2, 5, 3)))
        qrtool("factor", self.a, self.q)
        with open(self.q, "rb") as file:
            whole = file.read()
        heap, answers = whole.index(b"GCOL"), set()
        for place in range(heap, heap + 4096, 8):
            if whole[place:place + 8] == bytes(8):
                continue
            with open(self.q, "wb") as file:
                file.write(whole[:place] + bytes(8) + whole[place + 8:])
            done = subprocess.run([QRTOOL, "verify", self.a, self.q], capture_output=True,
                                  timeout=60, check=False)
            self.assertIn(done.returncode, (0, 3), (place, done.stderr))
            answers.add(done.returncode)
        self.assertEqual(answers, {0, 3})

    def test_outputs_of_format_1_0_are_verified(self):
        # Their texts have a fixed length, and their status is a number without names.
        old, a = (os.path.join(ROOT, "tests/data", name)
                  for name in ("format-1.0.h5", "format-1.0-input.h5"))
        with h5py.File(old) as file:
            self.assertIsInstance(file.attrs["order"], np.bytes_)
        self.assertIn(" pass\n", qrtool("verify", a, old))
        shutil.copy(old, self.q)
        with h5py.File(self.q, "r+") as file:
            file["Q"][1, 0, 0] += 1e-9
        self.assertIn("1 of 2 pass", qrtool("verify", a, self.q, status=1))

    def test_checksums_are_hdf5s(self):
        # Several chunks of Q, the last one with a part beyond the end; HDF5 checks what it reads.
        a = self.write(np.random.default_rng(6).standard_normal((1501, 16, 16)).astype("f4"))
        qrtool("factor", self.a, self.q)
        with h5py.File(self.q) as file:
            self.assertTrue(all(file[name].fletcher32 for name in ("Q", "R", "report/scale")))
            chunk = file["Q"].id.get_chunk_info(1)
            self.assertEqual((file["Q"].id.get_num_chunks(), chunk.filter_mask), (2, 0))
            self.assertNotEqual(1501 % file["Q"].chunks[0], 0)
            np.testing.assert_allclose(file["Q"][:] @ file["R"][:], a, atol=1e-5)
        with open(self.q, "r+b") as file:
            file.seek(chunk.byte_offset + 4321)
            byte = file.read(1)[0]
            file.seek(chunk.byte_offset + 4321)
            file.write(bytes([byte ^ 8]))
        with h5py.File(self.q) as file:
            self.assertEqual(file["Q"][0].shape, (16, 16))
            with self.assertRaises(OSError):
                file["Q"][1500]
        self.assertIn("checksum mismatch at matrix", qrtool("verify", self.a, self.q, status=3))

    def test_filters_of_h5py(self):
        a = np.round(np.random.default_rng(7).standard_normal((200, 20, 10)), 2)
        self.write(a)
        qrtool("factor", self.a, os.path.join(self.folder, "plain.h5"))
        with h5py.File(os.path.join(self.folder, "plain.h5")) as file:
            q = file["Q"][:]
        for options in ({"compression": "lzf"}, {"compression": "lzf", "shuffle": True},
                        {"compression": "lzf", "shuffle": True, "fletcher32": True},
                        {"compression": "gzip", "shuffle": True, "chunks": (7, 20, 10)}):
            self.write(a, **options)
            qrtool("factor", self.a, self.q, "--force")
            with h5py.File(self.q) as file:
                np.testing.assert_array_equal(file["Q"][:], q)

    def test_published_criteria_hold(self):
        qrtool("factor", DIGITS + ":/images", self.q)
        qrtool("verify", DIGITS + ":/images", self.q)
        qrtool("verify", DIGITS + ":/images", self.q, "--criteria", "m-eps")

    def test_verify_names_the_matrix_that_was_changed(self):
        qrtool("factor", DIGITS + ":/images", self.q)
        with h5py.File(self.q, "r+") as file:
            file["Q"][1234, 2, 3] += 1e-3
        self.assertIn("1234", qrtool("verify", DIGITS + ":/images", self.q, status=1))

    def test_agrees_with_numpy(self):
        rng = np.random.default_rng(1)
        for shape in ((4, 9, 5), (3, 5, 9), (2, 3, 6, 6), (7, 4)):
            a = self.write(rng.standard_normal(shape))
            qrtool("factor", self.a, self.q, "--force", "--sign", "lapack")
            q, r = np.linalg.qr(a)
            with h5py.File(self.q) as file:
                np.testing.assert_allclose(file["Q"][:], q, atol=1e-13)
                np.testing.assert_allclose(file["R"][:], r, atol=1e-13)
                leading = shape[:-2] or (1,)
                self.assertEqual(file["report/status"].shape, leading)

    def test_raw_is_numpys_raw(self):
        a = self.write(np.random.default_rng(2).standard_normal((9, 5)))
        qrtool("factor", self.a, self.q, "--mode", "raw")
        h, tau = np.linalg.qr(a, mode="raw")
        with h5py.File(self.q) as file:
            np.testing.assert_allclose(file["V"][:], h.T, atol=1e-13)
            np.testing.assert_allclose(file["tau"][:], tau, atol=1e-13)
        qrtool("verify", self.a, self.q)

    def test_empty_shapes_are_numpys(self):
        for shape in ((0, 3), (3, 0), (0, 0), (0, 4, 3), (2, 0, 3)):
            for mode in ("reduced", "complete"):
                a = self.write(np.zeros(shape))
                qrtool("factor", self.a, self.q, "--force", "--mode", mode)
                q, r = np.linalg.qr(a, mode=mode)
                with h5py.File(self.q) as file:
                    self.assertEqual((file["Q"].shape, file["R"].shape), (q.shape, r.shape))
                    np.testing.assert_array_equal(file["Q"][:], q)
                qrtool("verify", self.a, self.q)

    def test_reads_what_others_write(self):
        base = (np.random.default_rng(3).standard_normal((6, 7, 4)) * 9).astype("i2").astype("f8")
        reference = np.linalg.qr(base)[1]
        for dtype, options in (
            ("<f4", {}), (">f4", {}), ("<f8", {}), (">f8", {}), ("<f2", {}), ("i1", {}),
            ("<i4", {}),
            (">i8", {}), ("u2", {}), ("<f4", {"compression": "gzip", "shuffle": True,
                                              "fletcher32": True}),
            ("<f8", {"chunks": (4, 3, 2)}), ("<f8", {"maxshape": (None, 7, 4)}),
        ):
            a = base if dtype[-2] != "u" else np.abs(base)
            self.write(a.astype(dtype), **options)
            qrtool("factor", self.a, self.q, "--force", "--sign", "lapack")
            with h5py.File(self.q) as file:
                double = np.dtype(dtype).kind in "iu" or np.dtype(dtype).itemsize == 8
                self.assertEqual(file["R"].dtype, np.float64 if double else np.float32, dtype)
                if dtype[-2] != "u":
                    np.testing.assert_allclose(file["R"][:], reference, rtol=0, atol=1e-4)
            qrtool("verify", self.a, self.q)

    def test_column_order_goes_in_and_out(self):
        a = np.random.default_rng(4).standard_normal((5, 7, 4))
        self.write(np.swapaxes(a, 1, 2))
        qrtool("factor", self.a, self.q, "--order", "column", "--sign", "lapack")
        q, r = np.linalg.qr(a)
        with h5py.File(self.q) as file:
            np.testing.assert_allclose(np.swapaxes(file["Q"][:], 1, 2), q, atol=1e-13)
            np.testing.assert_allclose(np.swapaxes(file["R"][:], 1, 2), r, atol=1e-13)
            self.assertEqual(file.attrs["order"], "column")
        qrtool("verify", self.a, self.q, "--order", "column")
        # In the other order square matrices are other ones, the transposed.
        self.write(a[:, :4])
        qrtool("factor", self.a, self.q, "-f", "--order", "column")
        qrtool("verify", self.a, self.q, "--order", "row", status=1)

    def test_verifies_factors_of_numpy(self):
        a = self.write(np.random.default_rng(5).standard_normal((5, 7, 4)))
        q, r = np.linalg.qr(a)
        for names in (("Q", "R"), ("q", "r")):
            with h5py.File(self.q, "w") as file:
                file[names[0]], file[names[1]] = q, r
            qrtool("verify", self.a, self.q)
        with h5py.File(self.q, "r+") as file:
            file["q"][3] = np.eye(7, 4)
        qrtool("verify", self.a, self.q, status=1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
