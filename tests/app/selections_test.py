#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FILE:/A[...] takes what NumPy takes, from every kind of storage, and verify finds the same part
again."""
import os
import random
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

QRTOOL = sys.argv[1]
KINDS = {"contiguous": {}, "chunked": {"chunks": (2, 3, 5, 4)}, "cut": {"chunks": (2, 2, 3, 3)},
         "gzip": {"chunks": (3, 1, 5, 2), "compression": "gzip", "shuffle": True},
         "checked": {"chunks": (1, 2, 5, 4), "fletcher32": True}, "big_endian": {"dtype": ">f8"}}


def random_slice(draw, extent, may_be_index):
    if may_be_index and draw.random() < 0.2:
        return str(draw.randrange(-extent, extent))
    ends = [draw.choice(["", str(draw.randrange(-extent - 2, extent + 2))]) for _ in range(2)]
    return ":".join(ends) + draw.choice(["", "", f":{draw.randrange(1, 4)}"])


def random_selection(draw, shape):
    parts = [random_slice(draw, extent, d < len(shape) - 2) for d, extent in enumerate(shape)]
    if draw.random() < 0.15:
        parts = ["...", *parts[2:]]
    else:
        parts = parts[:draw.randrange(1, len(parts) + 1)]
    return "[" + draw.choice([",", ", "]).join(parts) + "]"


class Selections(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="qrtool-selections-")
        self.addCleanup(folder.cleanup)
        self.a, self.q, self.csv = (os.path.join(folder.name, name)
                                    for name in ("a.h5", "q.h5", "a.csv"))
        self.array = np.random.default_rng(1).standard_normal((7, 6, 5, 4))
        with h5py.File(self.a, "w") as file:
            for name, options in KINDS.items():
                file.create_dataset(name, data=self.array, **options)

    def run_tool(self, *args, status=0, stdin=None):
        done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, timeout=120,
                              check=False, input=stdin)
        self.assertEqual(done.returncode, status, (args, done.stdout, done.stderr))
        return done.stdout + done.stderr

    def expect_part(self, dataset, selection, *more):
        """Factors a part, compares Q R with NumPy's part and verifies it."""
        part = eval("self.array" + selection)
        self.run_tool("factor", f"{self.a}:/{dataset}{selection}", self.q, "-f", "-q", *more)
        column = "column" in more
        with h5py.File(self.q) as file:
            q, r = file["Q"][:], file["R"][:]
            self.assertEqual(file.attrs["source_dataset"],
                             f"/{dataset}{selection.replace(' ', '')}")
        product = np.swapaxes(np.swapaxes(q, -1, -2) @ np.swapaxes(r, -1, -2), -1,
                              -2) if column else q @ r
        self.assertEqual(product.shape, part.shape, selection)
        np.testing.assert_allclose(product, part, atol=1e-12, err_msg=selection)
        said = self.run_tool("verify", self.a, self.q)
        if part.size:
            self.assertNotIn("was made", said)

    def test_a_part_is_numpys_part(self):
        draw = random.Random(7)
        for dataset in KINDS:
            for selection in ("[2]", "[1:3]", "[::2]", "[2,1:4]", "[:,::3]", "[...,:3]",
                              "[:, :, ::2, 1:]"):
                self.expect_part(dataset, selection)
            for _ in range(6):
                selection = random_selection(draw, self.array.shape)
                self.expect_part(dataset, selection)
                self.expect_part(dataset, selection, "--order", "column")

    def test_parts_by_rows(self):
        # One matrix at a time does not fit: rows of it are read, and columns are picked from them.
        self.array = np.random.default_rng(2).standard_normal((2, 150000, 9))
        with h5py.File(self.a, "w") as file:
            file.create_dataset("tall", data=self.array, chunks=(1, 1000, 9))
        for selection in ("[:,100:140001:2,2:8]", "[1,::2]", "[::2,:149000]", "[1,::20]"):
            self.expect_part("tall", selection, "--memory", "9MiB")

    def test_verify_takes_the_recorded_part(self):
        self.run_tool("factor", f"{self.a}:/cut[1:3, 2]", self.q, "-q")
        self.assertIn(" pass\n", self.run_tool("verify", self.a, self.q))
        self.assertIn(" pass\n", self.run_tool("verify", f"{self.a}:/cut", self.q))
        self.assertIn("made from the dataset /cut[1:3,2], not from /cut[2:4,2]",
                      self.run_tool("verify", f"{self.a}:/cut[2:4,2]", self.q, status=1))
        self.run_tool("verify", f"{self.a}:/cut[:]", self.q, status=3)
        with h5py.File(self.a, "w") as file:  # the same part of a dataset with another name
            file["renamed"] = self.array
        self.assertIn(" pass\n", self.run_tool("verify", self.a, self.q))

    def test_text(self):
        a = np.arange(24.0).reshape(4, 3, 2) % 7
        text = "\n\n".join("\n".join(",".join(map(str, row)) for row in matrix) for matrix in a)
        with open(self.csv, "w", encoding="ascii") as file:
            file.write(text)
        for selection in ("[1:3]", "[::3]", "[2]", "[:,1:]", "[:,::2,1:]", "[-2:,:,:1]"):
            self.run_tool("factor", f"{self.csv}:{selection}", self.q, "-f", "-q")
            with h5py.File(self.q) as file:
                np.testing.assert_allclose(file["Q"][:] @ file["R"][:], eval("a" + selection),
                                           atol=1e-12)
                self.assertEqual(file.attrs["source_dataset"], selection)
            self.assertIn("pass", self.run_tool("verify", self.csv, self.q))
            self.assertIn("pass", self.run_tool("verify", "-", self.q, stdin=text))
        self.run_tool("factor", "-", self.q, "--dataset", "[1:, :2]", "-f", "-q", stdin=text)
        with h5py.File(self.q) as file:
            self.assertEqual(file["Q"].shape, (3, 2, 2))

    def test_numpys_files(self):
        npy, npz = self.a.replace(".h5", ".npy"), self.a.replace(".h5", ".npz")
        np.save(npy, self.array)
        np.savez(npz, one=self.array, two=np.eye(3))
        for selection in ("[2]", "[::3,1]", "[...,1:,::2]"):
            for name in (f"{npy}:{selection}", f"{npz}:one{selection}"):
                self.run_tool("factor", name, self.q, "-f", "-q")
                with h5py.File(self.q) as file:
                    np.testing.assert_allclose(file["Q"][:] @ file["R"][:],
                                               eval("self.array" + selection), atol=1e-12)
                self.assertIn(" pass\n", self.run_tool("verify", name.split(":")[0], self.q))

    def test_a_name_with_brackets_wins(self):
        with h5py.File(self.a, "w") as file:
            file["A"] = self.array
            file["A[0:2]"] = self.array[3]
        self.run_tool("factor", f"{self.a}:/A[0:2]", self.q, "-q")
        with h5py.File(self.q) as file:
            self.assertEqual(file["Q"].shape, (6, 5, 4))
        self.assertIn(" pass\n", self.run_tool("verify", self.a, self.q))

    def test_nothing_is_a_result_and_is_said(self):
        said = self.run_tool("factor", f"{self.a}:/cut[3:3]", self.q)
        self.assertIn("/cut[3:3] selects nothing (0x6x5x4)", said)
        with h5py.File(self.q) as file:
            self.assertEqual((file["Q"].shape, file["R"].shape), ((0, 6, 5, 4), (0, 6, 4, 4)))
        self.assertIn("selects nothing", self.run_tool("factor", f"{self.a}:/cut[:,:,:,9:]", self.q,
                                                       "-f"))

    def test_mistakes(self):
        for status, name, said in (
            (3, f"{self.a}:/cut[9]", "the index 9 is outside dimension 0, of 7"),
            (3, f"{self.a}:/cut[0,0,0]", "hint: 0:1 keeps it"),
            (3, f"{self.a}:/cot[0:3]", "there is no dataset /cot; did you mean /cut?"),
            (2, f"{self.a}:/cut[0:3", "a selection ends with ']'"),
            (2, f"{self.a}:/cut[::-1]", "the step -1 is not positive"),
            (3, f"{self.a}[0:3]", f"a colon comes before a selection: '{self.a}:[0:3]'"),
            (3, f"{self.a}:cut[0:3]", "a dataset's path begins with a slash"),
        ):
            self.assertIn(said, self.run_tool("factor", name, self.q, status=status), name)
        said = self.run_tool("factor", f"{self.a}:/cut", f"{self.q}:[0:3]", status=2)
        self.assertIn("the output is a file", said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
