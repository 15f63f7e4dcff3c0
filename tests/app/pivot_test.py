#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrtool factor --pivot` and `--condition`: A[:, P] = Q R with a falling diagonal, the rank and
the condition, on every route and in every format, and `verify` knows P."""
import csv
import itertools
import json
import os
import sys
import unittest

import h5py
import numpy as np

from tool import FolderTest, said

KINDS = ("f4", "f8", "c8", "c16")
ENDINGS = ("h5", "npz", "npy", "csv", "tsv", "mtx")
# LAPACK's and Eigen's columns norms are updated, so that a choice may be off by the root of the
# unit.
FALLS = 1 + 1e-7


def adjoint(a):
    return np.swapaxes(a, -1, -2).conj()


class Pivot(FolderTest):
    run_tool = staticmethod(said)

    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(23)

    def draw(self, shape, kind):
        a = self.random.standard_normal(shape)
        if kind[0] == "c":
            a = a + 1j * self.random.standard_normal(shape)
        return a.astype(kind)

    def write(self, a, name="a.h5"):
        with h5py.File(name, "w") as file:
            file["A"] = a

    def factor(self, a, *options, status=0, order="row"):
        """Q (None in mode r), R and P of matrices, and the report."""
        self.write(np.swapaxes(a, -1, -2) if order == "column" else a)
        said = self.run_tool("factor", "a.h5", "q.h5", "-f", "--pivot", "--order", order, *options,
                             status=status)
        self.run_tool("verify", "a.h5", "q.h5", status=status)
        with h5py.File("q.h5") as file:
            parts = [file[name][...] if name in file else None for name in ("Q", "R", "P")]
            report = {name: file["report"][name][...] for name in file["report"]}
            self.assertEqual(file.attrs["pivot"], "yes")
        if order == "column":
            parts[:2] = [None if part is None else np.swapaxes(part, -1, -2) for part in parts[:2]]
        return (*parts, report, said)

    def expect_pivoted(self, a, q, r, p, positive=True):
        k = min(a.shape[-2:])
        self.assertEqual(p.dtype, np.int32)
        self.assertEqual(p.shape, a.shape[:-2] + a.shape[-1:])
        np.testing.assert_array_equal(np.sort(p, axis=-1),
                                      np.broadcast_to(np.arange(a.shape[-1]), p.shape))
        wide = "c16" if a.dtype.kind == "c" else "f8"
        self.assertEqual(r.dtype, a.dtype)
        permuted = np.take_along_axis(a, p[..., None, :], axis=-1).astype(wide)
        u = np.finfo(r.dtype).eps
        size = np.linalg.norm(permuted, axis=(-2, -1))
        r = r.astype(wide)
        if q is None:
            gap = adjoint(permuted) @ permuted - adjoint(r) @ r
            self.assertTrue(np.all(np.linalg.norm(gap, axis=(-2, -1)) <= 30 * k * u * size**2))
        else:
            q = q.astype(wide)
            gap = permuted - q @ r
            self.assertTrue(np.all(np.linalg.norm(gap, axis=(-2, -1)) <= 30 * k * u * size))
            if q.shape[-1] <= 200:  # of more, `verify` has seen it
                gap = adjoint(q) @ q - np.eye(q.shape[-1])
                self.assertTrue(np.all(np.linalg.norm(gap, axis=(-2, -1)) <= 30 * k * u))
        self.assertTrue((np.diagonal(r, axis1=-2, axis2=-1).imag == 0).all())
        self.assertTrue((np.tril(r, -1) == 0).all())
        diagonal = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
        self.assertTrue(np.all(diagonal[..., 1:] <= FALLS * diagonal[..., :-1] + 1e-300), diagonal)
        # Every column has no more left than the one that was chosen.
        for i in range(k):
            left = np.linalg.norm(r[..., i:, i:], axis=-2).max(axis=-1)
            self.assertTrue(np.all(left <= (1 + 1e-5) * diagonal[..., i] + 1e-300))
        if positive:
            self.assertTrue(np.all(np.diagonal(r, axis1=-2, axis2=-1).real >= 0))

    def test_shapes_types_modes_and_orders(self):
        shapes = [(7, 16, 5), (3, 2, 40, 40), (5, 12), (6, 3, 9), (4, 1), (1, 4), (2, 200, 130),
                  (3, 700, 6)]
        for shape in shapes:
            for kind in KINDS:
                a = self.draw(shape, kind)
                # A complex Q of 700 x 700 is slow to check, and says no more than a real one.
                is_large = kind[0] == "c" and shape[-2] == 700
                for mode in ("reduced", "r") if is_large else ("reduced", "complete", "r"):
                    q, r, p, report, said = self.factor(a, "--mode", mode)
                    self.expect_pivoted(a, q, r, p)
                    np.testing.assert_array_equal(report["rank"], min(shape[-2:]))
                    self.assertIn(f"rank {min(shape[-2:])}", said)
        for kind in ("f8", "c16"):
            a = self.draw((3, 8, 6), kind)
            self.expect_pivoted(a, *self.factor(a, order="column")[:3])

    def test_the_permutation_is_that_of_the_largest_columns(self):
        a = np.diag([1.0, 5.0, 3.0, 9.0])
        q, r, p, _, _ = self.factor(a)
        np.testing.assert_array_equal(p, [3, 1, 2, 0])
        np.testing.assert_array_equal(np.diagonal(r), [9, 5, 3, 1])
        np.testing.assert_array_equal(q @ r, a[:, p])
        # With phases of the columns, which R does not show on its diagonal.
        turned = a * np.array([1j, -1, (3 - 4j) / 5, 1])
        q, r, p, _, _ = self.factor(turned)
        np.testing.assert_array_equal(p, [3, 1, 2, 0])
        np.testing.assert_allclose(r, np.diag([9, 5, 3, 1]), atol=1e-15)
        np.testing.assert_allclose(q @ r, turned[:, p], atol=1e-14)

    def test_ranks_do_not_depend_on_units(self):
        for kind in KINDS:
            a = self.draw((6, 60, 8), "c16" if kind[0] == "c" else "f8")
            factor = 2j if kind[0] == "c" else 2
            a[1, :, 3] = a[1, :, 0] - factor * a[1, :, 5]
            a[2] = np.outer(a[2, :, 0], np.arange(8.0))
            a[3] = 0
            a[4] *= 10.0 ** -np.arange(0, 16, 2)
            a[5, :, 2:5] = 0
            for mode in ("reduced", "r"):
                q, r, p, report, said = self.factor(a.astype(kind), "--mode", mode)
                np.testing.assert_array_equal(report["rank"], [8, 7, 1, 0, 8, 5])
                self.expect_pivoted(a.astype(kind), q, r, p)
                self.assertIn("rank below 8 of 4 of 6, the least 0 (matrix 3)", said)

    def test_another_rank_in_float64_is_said(self):
        """A line through x = 100 +- 1e-4 has rank 1 in float32, and its numbers have rank 2."""
        a = np.stack([np.ones((3, 50)), 100 + self.random.uniform(-1e-4, 1e-4, (3, 50))], 2)
        a[2, :, 1] = 100
        a, name = a.astype("f4"), "other_rank_in_float64"
        b = self.random.standard_normal((3, 50)).astype("f4")
        note = "of 3 matrices with dependent columns in single precision, 2 have another rank in"
        q, r, p, report, said = self.factor(a)
        np.testing.assert_array_equal(report["rank"], 1)
        self.assertIn(note, said)
        self.assertIn("--precision double", said)
        with h5py.File("q.h5") as file:
            self.assertEqual(file.attrs[name], 2)
        np.save("b.npy", b)
        np.save("w.npy", np.ones((3, 50), "f4"))
        for more in ((), ("--weights", "w.npy"), ("--missing", "skip"), ("--leverage",)):
            said = self.run_tool("solve", "a.h5", "b.npy", "x.h5", "-f", "--rows", "last", *more)
            self.assertIn(note, said)
            with h5py.File("x.h5") as file:
                self.assertEqual(file.attrs[name], 2)
        said = self.run_tool("solve", "a.h5:/A[0]", "b.npy", "x.npz", "-f")
        self.assertIn("of 1 matrix with dependent columns in single precision, 1 has", said)
        for more in (("--precision", "double"), ("--rank-tolerance", "1e-3")):
            said = self.run_tool("solve", "a.h5", "b.npy", "x.h5", "-f", "--rows", "last", *more)
            self.assertNotIn("another rank", said)
        self.assertNotIn("another rank", self.run_tool("solve", "a.h5", "b.npy", "x.h5", "-f", "-q",
                                                       "--rows", "last"))

    def test_signs_of_lapack_are_those_of_the_permuted_matrix(self):
        for kind in ("f8", "c16"):
            for shape in ((4, 12, 7), (4, 6, 6), (3, 5, 9), (2, 3000, 4), (3, 1, 1)):
                a = self.draw(shape, kind)
                if shape[0] == 3:
                    a[1] = a[1].real  # the last pivot of a square is real, and kept
                # A complex Q of 3000 x 3000 takes half a minute to check.
                is_large = kind == "c16" and shape[1] == 3000
                for mode in ("reduced",) if is_large else ("reduced", "complete"):
                    q, r, p, _, _ = self.factor(a, "--sign", "lapack", "--mode", mode)
                    self.expect_pivoted(a, q, r, p, positive=False)
                    for i in range(shape[0]):
                        reference = np.linalg.qr(a[i][:, p[i]])[1]
                        np.testing.assert_array_equal(np.sign(np.diagonal(r[i]).real),
                                                      np.sign(np.diagonal(reference).real))

    def test_scipy_chooses_the_same_columns(self):
        try:
            from scipy import linalg
        except ImportError:
            self.skipTest("SciPy is not installed")
        for kind in ("f8", "c16"):
            for m, n in ((9, 5), (6, 6), (5, 9), (80, 40)):
                # No two columns are about as long, whatever was projected out.
                a = self.draw((m, n), kind) * 4.0 ** self.random.permutation(n)
                q, r, p, _, _ = self.factor(a, "--sign", "lapack")
                own = linalg.qr(a, mode="economic", pivoting=True)
                np.testing.assert_array_equal(p, own[2])
                size = np.linalg.norm(a)
                np.testing.assert_allclose(r / size, own[1] / size, atol=1e-13)
                np.testing.assert_allclose(q, own[0], atol=1e-12)

    def test_by_rows(self):
        a = self.random.standard_normal((90000, 12)) * 10.0 ** self.random.permutation(12)
        a[:, 4] = a[:, 7]
        a[:, 9] = 0
        for kind in ("f4", "f8"):
            b = a.astype(kind)
            for options in ([], ["--mode", "r"], ["--sign", "lapack"]):
                q, r, p, report, said = self.factor(b, "--variant", "cpu/tall", *options)
                self.expect_pivoted(b, q, r, p, positive="--sign" not in options)
                small = self.factor(b, "--memory", "8MiB", "--verbose", "--explain", *options)
                self.assertIn("rows of a matrix at a time", small[4])
                for one, other in zip((q, r, p), small[:3]):
                    self.assertEqual(one is None or one.tobytes(),
                                     other is None or other.tobytes())
                if options != ["--mode", "r"]:  # whose error is estimated by rows
                    for name, column in report.items():
                        np.testing.assert_array_equal(column, small[3][name], name)
                np.testing.assert_array_equal(report["rank"], [10])
                np.testing.assert_array_equal(small[3]["rank"], [10])
                self.assertLess(small[3]["diagonal_ratio"][0], 1e-5)

    def test_products_above_the_bar_are_factored_again(self):
        # Q is a product of two orthogonal matrices, and the bar of 16 rows leaves no room for both.
        self.run_tool("generate", "--shape", "4000x16x16", "--precision", "double", "a.h5")
        for variant in ("cpu/batched", "cpu/eigen"):
            self.run_tool("factor", "a.h5", "q.h5", "-f", "--pivot", "--variant", variant)
            self.assertIn("4,000", self.run_tool("verify", "a.h5", "q.h5"))

    def test_range(self):
        for kind, sizes in (("f4", (1e-30, 1e37)), ("f8", (1e-290, 1e300)), ("c8", (1e-30, 1e36)),
                            ("c16", (1e-290, 1e300))):
            for size in sizes:
                a = self.random.uniform(-1, 1, (2, 9, 4)) * size
                if kind[0] == "c":
                    a = a + 1j * self.random.uniform(-1, 1, a.shape) * size
                a = a.astype(kind)
                q, r, p, report, _ = self.factor(a)
                np.testing.assert_array_equal(report["rank"], 4)
                scale = kind in ("f8", "c16") and size or 1
                self.expect_pivoted(a / scale, q, (r / scale).astype(r.dtype), p)

    def test_a_bad_matrix_stays_alone(self):
        for kind, bad in (("f8", np.nan), ("c16", complex(1, np.nan)), ("c8", complex(np.inf, 0))):
            a = self.draw((3, 9, 4), kind)
            alone = self.factor(a, "--condition")
            a[1, 2, 3] = bad
            q, r, p, report, _ = self.factor(a, "--condition", status=1)
            self.assertTrue(np.isnan(q[1]).all() and np.isnan(r[1]).all()
                            and np.isnan(report["condition"][1]))
            np.testing.assert_array_equal(p[1], np.arange(4))
            np.testing.assert_array_equal(report["rank"], [4, -1, 4])
            for i in (0, 2):
                for one, other in zip((q, r, p), alone[:3]):
                    np.testing.assert_array_equal(one[i], other[i])

    def test_empty_matrices(self):
        for kind, (shape, r_shape) in itertools.product(
                ("f8", "c8"), (((0, 3, 2), (0, 2, 2)), ((3, 0), (0, 0)), ((0, 3), (0, 3)))):
            _, r, p, _, _ = self.factor(np.zeros(shape, kind))
            self.assertEqual((r.shape, p.shape), (r_shape, shape[:-2] + shape[-1:]))

    def test_every_format(self):
        a = self.random.standard_normal((9, 5))
        a[:, 2] = a[:, 0]
        self.write(a)
        for ending in ENDINGS:
            out = f"{ending}.{ending}"
            said = self.run_tool("factor", "a.h5", out, "--pivot", "--condition")
            self.assertIn("rank below 5 of 1 of 1, the least 4 (matrix 0)", said)
            answer = self.run_tool("verify", "a.h5", out)
            self.assertIn("pivoted: A[:, P] is compared", answer)
            self.assertIn("the matrix passes", answer)
        with h5py.File("h5.h5") as file:
            p = file["P"][...]
            rank, condition = file["report/rank"][...], file["report/condition"][...]
        self.assertEqual((p.dtype, rank.dtype), (np.int32, np.int32))
        for each in (np.load("npy.P.npy"), np.load("npz.npz")["P"]):
            self.assertEqual(each.dtype, np.int32)
            np.testing.assert_array_equal(each, p)
        np.testing.assert_array_equal(np.loadtxt("csv.P.csv", delimiter=",", dtype=int), p)
        with open("tsv.P.tsv", encoding="utf-8") as file:
            self.assertEqual(file.read(), "# columns of A, counted from 0: A[:, P] = Q R\n" +
                             "\t".join(map(str, p)) + "\n")
        with open("mtx.P.mtx", encoding="utf-8") as file:
            self.assertEqual(file.read().split(),
                             ["%%MatrixMarket", "matrix", "array", "integer", "general", "1", "5",
                              *map(str, p)])
        with np.load("npz.npz") as file:
            np.testing.assert_array_equal(file["report_rank"], rank)
            np.testing.assert_array_equal(file["report_condition"], condition)
        with open("csv.report.csv", encoding="utf-8") as file:
            line = next(csv.DictReader(file))
        self.assertEqual((line["rank"], float(line["condition"])), ("4", condition[0]))
        for name in ("o.npy", "p.mtx"):
            self.run_tool("factor", "a.h5", name, "-f", "--pivot")
            with open(f"{name[0]}.report.json", encoding="utf-8") as file:
                line = json.load(file)["matrices"][0]
            self.assertEqual((line["rank"], "condition" in line), (4, False))

    def test_a_run_without_pivots_takes_the_old_permutation_away(self):
        a = self.random.standard_normal((6, 3))
        self.write(a)
        self.run_tool("factor", "a.h5", "o.csv", "--pivot")
        self.assertTrue(os.path.exists("o.P.csv"))
        self.assertIn("exists", self.run_tool("factor", "a.h5", "o.csv", status=5))
        self.run_tool("factor", "a.h5", "o.csv", "-f")
        self.assertFalse(os.path.exists("o.P.csv"))
        self.run_tool("verify", "a.h5", "o.csv")

    def test_every_format_of_complex_numbers(self):
        a = self.draw((9, 5), "c16")
        a[:, 2] = a[:, 0] * 1j
        self.write(a)
        for ending in ENDINGS:
            out = f"{ending}.{ending}"
            said = self.run_tool("factor", "a.h5", out, "--pivot", "--condition")
            self.assertIn("rank below 5 of 1 of 1, the least 4 (matrix 0)", said)
            self.assertIn("the matrix passes", self.run_tool("verify", "a.h5", out))
        with h5py.File("h5.h5") as file:
            p, condition = file["P"][...], file["report/condition"][...]
        self.assertGreater(condition, 1e14)
        np.testing.assert_array_equal(np.load("npy.P.npy"), p)
        np.testing.assert_array_equal(np.loadtxt("csv.P.csv", delimiter=",", dtype=int), p)
        with open("mtx.P.mtx", encoding="utf-8") as file:
            self.assertIn("matrix array integer general", file.readline())

    def test_verify_sees_a_wrong_permutation(self):
        for kind in ("c8", "f8"):
            a = self.draw((2, 9, 4), kind)
            self.factor(a)
            with h5py.File("q.h5", "a") as file:
                file["P"][1] = np.roll(file["P"][1], 1)
            self.assertIn("1 of 2 pass", self.run_tool("verify", "a.h5", "q.h5", status=1))
        self.factor(a)
        with h5py.File("q.h5", "a") as file:
            p = file["P"][...]
            file["P"][1] = np.roll(p[1], 1)
        self.assertIn("1 of 2 pass", self.run_tool("verify", "a.h5", "q.h5", status=1))
        for wrong in (p + 1, np.zeros_like(p), p - 1):
            with h5py.File("q.h5", "a") as file:
                file["P"][...] = wrong
            self.assertIn("count the columns from 0",
                          self.run_tool("verify", "a.h5", "q.h5", status=3))
        with h5py.File("q.h5", "a") as file:
            del file["P"]
        self.assertIn("holds no P", self.run_tool("verify", "a.h5", "q.h5", status=3))
        self.run_tool("factor", "a.h5", "o.npy", "--pivot")
        stored = np.load("o.P.npy")
        np.save("o.P.npy", np.roll(stored, 1, axis=-1))
        self.assertIn("is not the one that", self.run_tool("verify", "a.h5", "o.npy", status=3))

    def test_verify_takes_the_permutation_of_others(self):
        p = np.array([2, 0, 3, 1])
        for kind in ("c16", "f8"):
            a = self.draw((30, 4), kind)
            q, r = np.linalg.qr(a[:, p])
            self.write(a)
            with h5py.File("other.h5", "w") as file:
                file["Q"], file["R"], file["P"] = q, r, p
            self.run_tool("verify", "a.h5", "other.h5")
            with h5py.File("small.h5", "w") as file:
                file["q"], file["r"], file["p"] = q, r, p.astype("i4")
            np.savez("small.npz", q=q, r=r, p=p.astype("i4"))
            for file in ("small.h5", "small.npz"):
                self.run_tool("verify", "a.h5", file)
        self.run_tool("verify", "a.h5", "other.h5", "--memory", "1MiB")
        with h5py.File("other.h5", "a") as file:
            del file["P"]
            file["P"] = p[:3]
        self.assertIn("P", self.run_tool("verify", "a.h5", "other.h5", status=3))

    def test_verify_by_rows(self):
        a = self.random.standard_normal((200000, 6)) * [1, 5, 2, 7, 3, 9]
        self.write(a)
        self.run_tool("factor", "a.h5", "q.h5", "--pivot")
        said = self.run_tool("verify", "a.h5", "q.h5", "--memory", "4MiB", "--verbose")
        self.assertIn("rows at a time", said)
        self.assertIn("the matrix passes", said)

    def test_several_datasets(self):
        with h5py.File("a.h5", "w") as file:
            file["one"] = self.random.standard_normal((3, 5, 4))
            file["two"] = self.random.standard_normal((6, 2))
        self.run_tool("factor", "a.h5", "q.h5", "--dataset", "one", "--dataset", "two", "--pivot",
                      "--condition")
        self.run_tool("verify", "a.h5", "q.h5")
        with h5py.File("q.h5") as file:
            self.assertEqual((file["P/one"].shape, file["P/two"].shape), ((3, 4), (2,)))
            self.assertEqual(file["report/one/rank"][...].tolist(), [4, 4, 4])

    def test_threads_do_not_change_it(self):
        for kind in ("f4", "c8"):
            a = self.draw((500, 20, 7), kind)
            one = self.factor(a, "--threads", "1")[:3]
            for part, other in zip(one, self.factor(a, "--threads", "2", "--memory", "4MiB")[:3]):
                np.testing.assert_array_equal(part, other)

    def test_condition(self):
        for kind, n in itertools.product(("f8", "c16"), (1, 2, 5, 12, 40)):
            left, right = (np.linalg.qr(self.draw((3, size, n), kind))[0] for size in (3 * n, n))
            for exponent in (0, 3, 6, 10):
                values = np.logspace(0, -exponent, n) if n > 1 else np.ones(1)
                a = (left * values) @ adjoint(right)
                self.write(a)
                for mode in ("reduced", "r", "raw"):
                    said = self.run_tool("factor", "a.h5", "q.h5", "-f", "--condition", "--mode",
                                         mode)
                    self.assertIn("largest condition number about", said)
                    with h5py.File("q.h5") as file:
                        found = file["report/condition"][...]
                        self.assertNotIn("rank", file["report"])
                    true = np.linalg.cond(a)
                    self.assertTrue(np.all(found <= 1.001 * true) and np.all(found >= 0.7 * true),
                                    (n, found, true))

    def test_condition_of_singular_matrices_is_infinite_or_huge(self):
        for kind in ("f8", "c16", "c8"):
            a = np.ones((2, 5, 3), kind) * (1 + 1j if kind[0] == "c" else 1)
            a[1] = 0
            self.write(a)
            result = json.loads(self.run_tool("factor", "a.h5", "q.h5", "-f", "--condition",
                                              "--pivot", "--json"))
            with h5py.File("q.h5") as file:
                self.assertTrue(np.all(file["report/condition"][...] > (1e6 if kind == "c8" else
                                                                        1e14)))
                self.assertEqual(file["report/condition"][1], np.inf)
            self.assertEqual(result["rank"], {"full": 3, "deficient": 2, "least": 0, "matrix": 1})
            self.assertIsNone(result["condition"]["largest"])
            self.assertIn("condition number infinite",
                          self.run_tool("factor", "a.h5", "q.h5", "-f", "--condition"))

    def test_contradictions_are_refused(self):
        self.write(np.eye(3))
        for options in (["--mode", "raw"], ["--mode", "r", "--sign", "lapack"]):
            self.assertIn("hint:", self.run_tool("factor", "a.h5", "q.h5", "--pivot", *options,
                                                 status=2))
        self.assertIn("hint:", self.run_tool("factor", "a.h5", "-", "--mode", "r", "--pivot",
                                             status=2))
        self.assertFalse(os.path.exists("q.h5"))

    def test_check_none_and_probe(self):
        for kind, check in itertools.product(("f8", "c16"), ("none", "probe")):
            a = self.draw((2, 300, 220), kind)
            q, r, p, report, _ = self.factor(a, "--check", check)
            self.expect_pivoted(a, q, r, p)
            self.assertEqual(np.isnan(report["residual"]).all(), check == "none")
            np.testing.assert_array_equal(report["rank"], 220)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
