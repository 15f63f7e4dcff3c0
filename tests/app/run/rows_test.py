#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A matrix larger than --memory is factored by rows. The bits are those that it has in memory, and
the process stays as small as it was told to."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

QRTOOL, COUNT_CALLS = sys.argv[1:3]


class Rows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="qrtool-rows-")
        self.a = self.path("a.h5")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tool(self, *args, expect=0):
        done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, timeout=300,
                              check=False)
        self.assertEqual(done.returncode, expect, (args, done.stdout, done.stderr))
        return done.stdout + done.stderr

    def generate(self, *options):
        self.run_tool("generate", *options, self.a, "-q", "-f")

    def factor(self, name, *options, expect=0):
        said = self.run_tool("factor", self.a, self.path(name), "--backend", "cpu", "-f", *options,
                             expect=expect)
        if not os.path.exists(self.path(name)):
            return said, {}
        with h5py.File(self.path(name)) as file:
            found = {key: file[key][:] for key in ("Q", "R") if key in file}
            found.update({key: file["report"][key][:] for key in file["report"]})
        return said, found

    # What no plan counts: stacks of threads, and what HDF5 keeps of the file's structure.
    ROOM = 16 << 20

    def peak_bytes(self, *args):
        """VmHWM of the tool's process, which it leaves in a file when it ends."""
        log = self.path("counts")
        env = dict(os.environ, LD_PRELOAD=COUNT_CALLS, QRTOOL_COUNT_LOG=log,
                   ASAN_OPTIONS="verify_asan_link_order=0")
        done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, timeout=300,
                              check=False, env=env)
        self.assertEqual(done.returncode, 0, (args, done.stderr))
        with open(log, encoding="ascii") as file:
            counts = dict(line.split() for line in file)
        return int(counts["peak_kib"]) << 10

    def variant(self, name):
        with h5py.File(self.path(name)) as file:
            return file.attrs["variant"]

    def expect_same(self, one, other):
        for key in ("Q", "R"):
            self.assertEqual(key in one, key in other)
            if key in one:
                np.testing.assert_array_equal(one[key].view(np.uint8), other[key].view(np.uint8))

    def test_the_result_is_the_one_in_memory(self):
        cases = [("60000x20", "12MiB"), ("200000x3", "5MiB"), ("60001x40", "20MiB"),
                 ("2x60000x20", "12MiB")]
        for shape, memory in cases:
            for precision in ("single", "double"):
                for sign in ("positive", "lapack"):
                    self.generate("--shape", shape, "--precision", precision, "--kind", "cond",
                                  "--cond", "1e5")
                    size = str(2 * int(memory[:-3])) + "MiB" if precision == "double" else memory
                    said, by_rows = self.factor("b.h5", "--sign", sign, "--memory", size,
                                                "--threads", "2",
                                                "--explain")
                    self.assertIn("rows of a matrix at a time", said)
                    _, whole = self.factor("w.h5", "--sign", sign)  # the plan's own choice
                    self.expect_same(whole, by_rows)
                    self.assertTrue((by_rows["status"] == 0).all())
                    for key in ("residual", "orthogonality", "lower", "diagonal_ratio"):
                        np.testing.assert_array_equal(by_rows[key], whole[key], key)
        self.run_tool("verify", self.a, self.path("b.h5"), "--memory", "20MiB")

    def draw_complex(self, rows, columns, kind="c16"):
        """Complex numbers around a mean, in a file of chunks that no row ends."""
        random = np.random.default_rng(rows + columns)
        parts = [random.standard_normal((rows, columns)) for _ in range(2)]
        values = (parts[0] + 3 + 1j * parts[1]).astype(kind)
        with h5py.File(self.a, "w") as file:
            file.create_dataset("A", data=values, chunks=(777, columns))
        return values

    def test_complex_matrices_are_those_in_memory(self):
        for kind, memory, options in (("c8", "9MiB", ["--sign", "lapack"]),
                                      ("c8", "9MiB", ["--pivot", "--condition"]),
                                      ("c16", "18MiB", []), ("c16", "8MiB", ["--mode", "r"])):
            values = self.draw_complex(40000, 12, kind)
            said, by_rows = self.factor("b.h5", *options, "--memory", memory, "--threads", "2",
                                        "--explain")
            self.assertIn("rows of a matrix at a time", said)
            _, whole = self.factor("w.h5", *options)
            self.expect_same(whole, by_rows)
            self.assertEqual([self.variant(name) for name in ("b.h5", "w.h5")], ["cpu/tall"] * 2)
            names = ["status", "diagonal_ratio"]
            if options == ["--mode", "r"]:
                # Beyond 4 columns it is an estimate.
                self.assertIn("estimated with 4 vectors", said)
                self.assertTrue(0.25 < by_rows["residual"][0] / whole["residual"][0] < 4)
            else:
                names += ["residual", "orthogonality", "lower"]
            for name in names:
                np.testing.assert_array_equal(by_rows[name], whole[name], name)
            self.assertEqual(by_rows["status"][0], 0)
            order = slice(None)
            if "--pivot" in options:
                with h5py.File(self.path("b.h5")) as file:
                    order = file["P"][:]
            r = np.linalg.qr(values.astype("c16")[:, order], "r")
            unit = (by_rows["R"].diagonal().real / r.diagonal())[:, None]
            np.testing.assert_allclose(r * unit, by_rows["R"],
                                       atol=(1e-3 if kind == "c8" else 1e-11) * abs(r).max())
            self.run_tool("verify", self.a, self.path("b.h5"), "--memory", "40MiB")

    def test_wide_trees_are_the_same_in_memory(self):
        self.generate("--shape", "20000x160")
        said, by_rows = self.factor("b.h5", "--memory", "40MiB", "--explain")
        self.assertIn("rows of a matrix at a time", said)
        _, whole = self.factor("w.h5", "--memory", "1GiB")
        self.expect_same(whole, by_rows)
        self.assertEqual([self.variant(name) for name in ("b.h5", "w.h5")],
                         ["cpu/tall", "cpu/tall"])
        self.run_tool("verify", self.a, self.path("b.h5"))

    def test_no_memory_limit_changes_a_byte(self):
        # Nothing forces a variant here. What does not fit is refused, and nothing else takes its
        # place.
        for shape, limits in (("30000x24", ("6MiB", "8MiB", "12MiB", "24MiB", "1GiB")),
                              ("9000x24", ("1MiB", "2MiB", "4MiB", "1GiB")),
                              ("60x50x40", ("200KiB", "1MiB", "1GiB"))):
            self.generate("--shape", shape)
            files, reports = set(), set()
            for memory in limits:
                done = subprocess.run([QRTOOL, "factor", self.a, self.path("b.h5"), "--backend",
                                       "cpu", "-f", "-q",
                                       "--memory", memory, "--threads", "2"], capture_output=True,
                                       check=False)
                if done.returncode == 6:
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                with h5py.File(self.path("b.h5")) as file:
                    files.add(file["Q"][:].tobytes() + file["R"][:].tobytes() +
                              file.attrs["variant"].encode())
                    reports.add(b"".join(file["report"][key][:].tobytes()
                                         for key in sorted(file["report"])))
            self.assertEqual((len(files), len(reports)), (1, 1), shape)

    def test_verify_measures_the_same_in_any_memory(self):
        self.generate("--shape", "30000x150")
        self.factor("q.h5")
        found = set()
        for memory in ("8MiB", "11MiB", "20MiB", "1GiB"):
            said = self.run_tool("verify", self.a, self.path("q.h5"), "--json", "--memory", memory)
            found.add(str(json.loads(said)["check"]))
        self.assertEqual(len(found), 1, found)

    def test_verify_measures_complex_factors_of_numpy_in_any_memory(self):
        values = self.draw_complex(30000, 10)
        q, r = np.linalg.qr(values)
        wrong = q.copy()
        wrong[29999, 9] += 1e-9j
        for factor, expect in ((q, 0), (wrong, 1), (q.conj(), 1)):
            with h5py.File(self.path("q.h5"), "w") as file:
                file["Q"], file["R"] = factor, r
            found = set()
            for memory in ("7MiB", "1GiB"):
                said = self.run_tool("verify", self.a, self.path("q.h5"), "--json", "--memory",
                                     memory, expect=expect)
                found.add(str(json.loads(said)["check"]))
            self.assertEqual(len(found), 1, found)

    def test_memory_bounds_what_is_resident(self):
        # The file is one chunk, three times as large as --memory. Holding it, let alone once per
        # thread, would show.
        rows, columns = 600000, 40
        with h5py.File(self.a, "w") as file:
            data = file.create_dataset("A", (rows, columns), "f4", chunks=(rows, columns))
            data[:] = np.random.default_rng(5).standard_normal((rows, columns), np.float32)
        base = self.peak_bytes("--version")
        if base > 64 << 20:
            self.skipTest("a sanitizer keeps memory that was freed")
        for mode in ("r", "reduced"):
            peak = self.peak_bytes("factor", self.a, self.path("q.h5"), "-f", "-q", "--backend",
                                   "cpu", "--mode", mode,
                                   "--memory", "32MiB", "--threads", "2")
            self.assertLess(peak, base + (32 << 20) + self.ROOM, mode)

    def test_scratch_holds_the_tree_and_is_left_empty(self):
        self.generate("--shape", "60000x20")
        os.mkdir(self.path("scratch"))
        said, by_rows = self.factor("b.h5", "--memory", "12MiB", "--threads", "1", "--scratch",
                                    self.path("scratch"),
                                    "--explain")
        self.assertIn("in --scratch", said)
        self.assertEqual(os.listdir(self.path("scratch")), [])
        _, whole = self.factor("w.h5")
        self.expect_same(whole, by_rows)
        said, _ = self.factor("c.h5", "--memory", "12MiB", "--threads", "1", "--scratch",
                              self.path("missing"),
                              expect=5)
        self.assertIn("--scratch", said)
        self.assertFalse(os.path.exists(self.path("c.h5")))

    def test_r_alone_is_checked_in_the_same_pass(self):
        # Up to 8 columns the check is exact, beyond it is an estimate: it does not depend on memory
        # or threads.
        for shape, words in (("120000x20", "estimated with 8 vectors"),
                             ("600000x5", "/ ||A||^2, a weaker check")):
            self.generate("--shape", shape)
            said, by_rows = self.factor("b.h5", "--threads", "1", "--mode", "r", "--memory", "8MiB",
                                        "--explain")
            self.assertIn("rows of a matrix at a time", said)
            self.assertIn(words, said)
            self.assertIn("the matrix passes", said)
            self.assertEqual(by_rows["status"][0], 0)
            self.assertTrue(np.isnan(by_rows["orthogonality"][0]))
            _, whole = self.factor("w.h5", "--mode", "r", "--variant", "cpu/tall")
            np.testing.assert_array_equal(whole["R"], by_rows["R"])
            ratio = by_rows["residual"][0] / whole["residual"][0]
            self.assertTrue(0.25 < ratio < 4, ratio)
            if shape.endswith("x5"):
                np.testing.assert_allclose(by_rows["residual"], whole["residual"], rtol=0.2)
            for more in (("--memory", "9MiB", "--threads", "2"),
                         ("--memory", "6MiB", "--threads", "1")):
                _, other = self.factor("c.h5", "--mode", "r", *more)
                np.testing.assert_array_equal(other["residual"], by_rows["residual"])
            self.run_tool("verify", self.a, self.path("b.h5"))

    def test_r_alone_is_read_from_every_layout(self):
        values = np.random.default_rng(3).standard_normal((2, 120007, 20)).astype(np.float32)
        layouts = ({}, {"chunks": (1, 1000, 20)}, {"chunks": (1, 16384, 20), "fletcher32": True},
                   {"chunks": (1, 120007, 20)}, {"chunks": (1, 7, 20)}, {"chunks": (1, 3000, 9)},
                   {"chunks": (1, 5000, 20), "compression": "gzip"}, {"dtype": "f8"})
        found = []
        for layout in layouts:
            with h5py.File(self.a, "w") as file:
                file.create_dataset("A", data=values, **layout)
            said, by_rows = self.factor("b.h5", "--mode", "r", "--precision", "single", "--memory",
                                        "11MiB", "--threads", "2",
                                        "--explain")
            self.assertIn("rows of a matrix at a time", said)
            found.append(by_rows)
            self.expect_same(found[0], by_rows)
        for b in range(2):
            np.testing.assert_allclose(np.abs(np.linalg.qr(values[b].astype(float), "r")),
                                       np.abs(found[0]["R"][b]),
                                       rtol=1e-5, atol=1e-3)

    def test_damage_in_r_alone_is_found(self):
        self.generate("--shape", "60000x20")
        with open(self.a, "r+b") as file:
            file.seek(-5000, os.SEEK_END)
            file.write(b"x" * 100)
        said, found = self.factor("b.h5", "--mode", "r", "--memory", "8MiB", "--threads", "1",
                                  expect=3)
        self.assertIn("damaged", said)
        self.assertEqual(found, {})

    def test_a_bad_matrix_stays_alone(self):
        self.generate("--shape", "2x60000x20")
        with h5py.File(self.a, "r+") as file:
            values = file["A"][:]
        values[0, 59999, 7] = np.nan
        with h5py.File(self.a, "w") as file:
            file["A"] = values
        said, found = self.factor("b.h5", "--memory", "12MiB", expect=1)
        self.assertIn("1 of 2 matrices contains NaN or Inf", said)
        self.assertTrue(np.isnan(found["Q"][0]).all() and np.isnan(found["R"][0]).all())
        self.assertEqual(list(found["status"]), [2, 0])
        values = self.draw_complex(40000, 12)
        values[39999, 3] = complex(1, np.inf)
        with h5py.File(self.a, "w") as file:
            file["A"] = values
        _, found = self.factor("b.h5", "--memory", "20MiB", expect=1)
        self.assertTrue(np.isnan(found["Q"].real).all() and np.isnan(found["R"].imag).all())
        self.assertEqual(list(found["status"]), [2])

    def test_columns_are_refused_for_q_and_read_for_r(self):
        values = np.random.default_rng(1).standard_normal((20, 60000)).astype(np.float32)
        with h5py.File(self.a, "w") as file:
            file["A"] = values
        said, _ = self.factor("b.h5", "--memory", "20MiB", "--order", "column", expect=6)
        self.assertIn("stored by columns", said)
        _, by_rows = self.factor("b.h5", "--memory", "12MiB", "--threads", "1", "--order", "column",
                                 "--mode", "r")
        _, whole = self.factor("w.h5", "--order", "column", "--mode", "r")
        np.testing.assert_array_equal(whole["R"], by_rows["R"])

    def test_progress_runs_over_both_passes(self):
        self.generate("--shape", "60000x20")
        said, _ = self.factor("b.h5", "--memory", "12MiB", "--progress", "always")
        self.assertIn("120,000/120,000  100%", said)
        self.assertIn("rows/s", said)

    def test_too_little_memory_is_stated(self):
        self.generate("--shape", "60000x20")
        said, _ = self.factor("b.h5", "--memory", "2MiB", expect=6)
        self.assertIn("even by rows", said)
        said, _ = self.factor("b.h5", "--memory", "1MiB", expect=6)
        self.assertIn("even by rows", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
