#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Complex least squares give NumPy's solutions, within a backward error that is measured here
again, for every shape, type, rank and size of numbers, and come back in the form of A."""
import json
import sys
import unittest

import h5py
import numpy as np

from tool import FolderTest, run

U = {"c8": 2.0**-23, "c16": 2.0**-52}
WIDE = "c32" if hasattr(np, "complex256") else "c16"


def norm(x):
    return float(np.sqrt((abs(np.asarray(x, WIDE))**2).sum()))


def backward_error(a, b, x):
    """The least of Stewart's bounds, with ||R^-H g|| by a pseudoinverse of A."""
    a, b, x = (np.asarray(v, WIDE) for v in (a, b, x))
    r = b - a @ x
    g = a.conj().T @ r
    size = np.hypot(norm(a) * norm(x), norm(b))
    if norm(r) == 0 or norm(g) == 0:
        return 0.0
    e = norm(r) / size
    projected = norm(np.linalg.pinv(a.astype("c16")).conj().T @ g.astype("c16"))
    return float(min(norm(g) / (norm(a) * norm(r)), e * projected / norm(r), e))


class ComplexSystems(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(40)

    def draw(self, *shape, kind="c16"):
        parts = [self.random.standard_normal(shape) for _ in range(2)]
        return (parts[0] + 1j * parts[1]).astype(kind)

    def solve(self, a, b, *options, status=0, verify=True):
        """The members of the output; every solution is verified."""
        np.save("a.npy", a)
        np.save("b.npy", b)
        run("solve", "a.npy", "b.npy", "x.npz", "-f", *options, status=status)
        if verify:
            run("verify", "a.npy", "b.npy", "x.npz", status=status)
        with np.load("x.npz") as out:
            return dict(out)

    def bar(self, a, kind):
        m, n = a.shape
        return U[kind] * min(max(m, 16), 30 * min(m, n))

    # ---- what NumPy gives

    def test_shapes_and_types(self):
        for kind in ("c8", "c16"):
            for m, n in ((1, 1), (5, 3), (3, 5), (16, 16), (40, 7), (7, 40), (130, 64), (300, 1)):
                with self.subTest(kind=kind, m=m, n=n):
                    a, b = self.draw(m, n, kind=kind), self.draw(m, kind=kind)
                    out = self.solve(a, b)
                    x = out["X"]
                    self.assertEqual((x.dtype, x.shape), (np.dtype(kind), (n,)))
                    self.assertLessEqual(backward_error(a, b, x), self.bar(a, kind))
                    reference = np.linalg.lstsq(a.astype("c16"), b.astype("c16"), rcond=None)[0]
                    within = 1e3 * U[kind] * np.linalg.cond(a)
                    self.assertLessEqual(norm(x - reference), within * norm(reference))
                    self.assertEqual(out["report_rank"], min(m, n))
                    self.assertAlmostEqual(
                        float(out["report_residual_norm"]) / norm(b), norm(b - a @ x) / norm(b),
                        delta=20 * U[kind])
                    if m >= n:
                        ratio = float(out["report_condition"]) / np.linalg.cond(a.astype("c16"))
                        self.assertGreater(ratio, 0.7)
                        self.assertLess(ratio, 1.01)

    def test_many_matrices_and_many_sides(self):
        for kind in ("c8", "c16"):
            a = self.draw(2, 3, 9, 4, kind=kind)
            for shape in ((2, 3, 9), (2, 3, 9, 2), (9,)):
                b = self.draw(*shape, kind=kind)
                x = self.solve(a, b)["X"]
                sides = np.broadcast_to(b, (2, 3, 9))[..., None] if b.ndim != 4 else b
                reference = np.linalg.pinv(a) @ sides
                reference = reference if b.ndim == 4 else reference[..., 0]
                np.testing.assert_allclose(x, reference, atol=1e3 * U[kind])

    def test_one_matrix_for_many_sides(self):
        """As columns and as rows; a side that is not finite, or has a gap, stays alone."""
        a = self.draw(12, 5)
        for m, b in (("first", self.draw(12, 500)), ("last", self.draw(500, 12))):
            columns = b if m == "first" else b.T
            columns[3, 77] = complex(0, np.nan)
            out = self.solve(a, b, "--rows", m, status=1)
            x = out["X"] if m == "first" else out["X"].T
            good = np.arange(500) != 77
            reference = np.linalg.lstsq(a, columns[:, good], rcond=None)[0]
            np.testing.assert_allclose(x[:, good], reference, atol=1e-13)
            self.assertTrue(np.isnan(x[:, 77].real).all() and np.isnan(x[:, 77].imag).all())
            self.assertEqual(int(out["report_status"][77]), 2)
            out = self.solve(a, b, "--rows", m, "--missing", "skip")
            x = out["X"] if m == "first" else out["X"].T
            rows = np.arange(12) != 3
            np.testing.assert_allclose(
                x[:, 77], np.linalg.lstsq(a[rows], columns[rows, 77], rcond=None)[0], atol=1e-12)
            np.testing.assert_allclose(x[:, good], reference, atol=1e-13)

    def test_deficient_matrices_take_the_least_norm(self):
        for kind in ("c8", "c16"):
            for m, n, rank in ((9, 6, 3), (6, 9, 3), (30, 20, 1), (8, 8, 7)):
                with self.subTest(kind=kind, m=m, n=n):
                    left = self.random.integers(-3, 4, (m, rank, 2)) @ [1, 1j]
                    right = self.random.integers(-3, 4, (rank, n, 2)) @ [1, 1j]
                    a = (left @ right).astype(kind)
                    b = self.draw(m, kind=kind)
                    out = self.solve(a, b)
                    true = np.linalg.matrix_rank(a.astype("c16"))
                    self.assertEqual(out["report_rank"], true)
                    reference = np.linalg.lstsq(a.astype("c16"), b.astype("c16"), rcond=1e-6)[0]
                    np.testing.assert_allclose(out["X"], reference, atol=3e4 * U[kind])
                    self.assertLessEqual(float(out["report_least_norm_error"]),
                                         U[kind] * min(max(m, 16), 30 * min(m, n)))
                    basic = self.solve(a, b, "--basic")["X"]
                    self.assertLessEqual(np.count_nonzero(basic), true)
                    np.testing.assert_allclose(norm(b - a @ basic), norm(b - a @ reference),
                                               rtol=1e4 * U[kind])

    def test_tiny_huge_graded_and_zero(self):
        for kind, sizes in (("c8", (1e-30, 1e30)), ("c16", (1e-280, 1e280))):
            a, b = self.draw(8, 3, kind=kind), self.draw(8, kind=kind)
            plain = self.solve(a, b)["X"]
            for size in sizes:
                power = np.dtype(kind).type(2.0**round(np.log2(size)))
                x = self.solve((a * power).astype(kind), (b * power).astype(kind))["X"]
                np.testing.assert_array_equal(x, plain)
            graded = (a * np.array([1e-9, 1, 1e9])).astype(kind)
            out = self.solve(graded, b)
            self.assertEqual(int(out["report_rank"]), 3)
            np.testing.assert_allclose(out["X"] * np.array([1e-9, 1, 1e9]), plain,
                                       atol=1e3 * U[kind])
            zero = self.solve(np.zeros((4, 2), kind), self.draw(4, kind=kind))
            self.assertEqual((list(zero["X"]), int(zero["report_rank"])), ([0, 0], 0))

    def test_no_numbers(self):
        for m, n in ((0, 3), (4, 0)):
            out = self.solve(np.zeros((m, n), "c16"), np.zeros(m, "c16"))
            self.assertEqual((out["X"].shape, out["X"].dtype), ((n,), np.dtype("c16")))
        out = self.solve(np.zeros((0, 4, 2), "c8"), np.zeros((0, 4), "c8"))
        self.assertEqual(out["X"].shape, (0, 2))

    def test_a_bad_matrix_stays_alone(self):
        a, b = self.draw(6, 7, 3), self.draw(6, 7)
        good = self.solve(a, b)["X"]
        a[2, 1, 1] = complex(np.inf, 1)
        out = self.solve(a, b, status=1)
        self.assertEqual(list(out["report_status"]), [0, 0, 2, 0, 0, 0])
        self.assertTrue(np.isnan(out["X"][2]).all())
        others = [0, 1, 3, 4, 5]
        self.assertEqual(out["X"][others].tobytes(), good[others].tobytes())

    # ---- options

    def test_weights_ridge_and_missing_rows(self):
        a, b, w = self.draw(20, 4), self.draw(20, 3), self.random.random(20)
        np.save("w.npy", w)
        root = np.sqrt(w)[:, None]
        x = self.solve(a, b, "--weights", "w.npy", verify=False)["X"]
        run("verify", "a.npy", "b.npy", "x.npz", "--weights", "w.npy")
        np.testing.assert_allclose(x, np.linalg.lstsq(root * a, root * b, rcond=None)[0],
                                   atol=1e-13)
        x = self.solve(a, b, "--ridge", "0.5")["X"]
        gram = a.conj().T @ a + 0.5 * np.eye(4)
        np.testing.assert_allclose(x, np.linalg.solve(gram, a.conj().T @ b), atol=1e-13)
        a[4, 2] = complex(1, np.nan)
        b[7, 1] = complex(np.nan, 1)
        out = self.solve(a, b, "--missing", "skip", "--fitted")
        x = out["X"]
        np.testing.assert_allclose(out["fitted"], a @ x, atol=1e-13)  # predicts b[7, 1]
        rows = np.arange(20) != 4
        np.testing.assert_allclose(x[:, 0], np.linalg.lstsq(a[rows], b[rows, 0], rcond=None)[0],
                                   atol=1e-13)
        rows[7] = False
        np.testing.assert_allclose(x[:, 1], np.linalg.lstsq(a[rows], b[rows, 1], rcond=None)[0],
                                   atol=1e-13)

    def test_too_few_rows(self):
        a, b = self.draw(5, 4), self.draw(5)
        b[:3] = np.nan
        out = self.solve(a, b, "--missing", "skip")
        self.assertEqual(int(out["report_status"]), 5)
        self.assertTrue(np.isnan(out["X"]).all())
        out = self.solve(a, b, "--missing", "skip", "--least-norm")
        np.testing.assert_allclose(out["X"], np.linalg.lstsq(a[3:], b[3:], rcond=None)[0],
                                   atol=1e-13)

    def test_standard_errors_covariance_fits(self):
        for kind in ("c8", "c16"):
            a, b = self.draw(30, 3, kind=kind), self.draw(30, 2, kind=kind)
            out = self.solve(a, b, "--covariance", "--residuals", "--fitted")
            wide = a.astype("c16")
            x = np.linalg.lstsq(wide, b.astype("c16"), rcond=None)[0]
            rest = b - wide @ x
            variance = (abs(rest)**2).sum(0) / 27
            inverse = np.linalg.inv(wide.conj().T @ wide)
            within = {"rtol": 1e3 * U[kind], "atol": 1e3 * U[kind]}
            se = np.sqrt(np.diag(inverse).real[:, None] * variance)
            self.assertEqual(out["se"].dtype, np.dtype("f4" if kind == "c8" else "f8"))
            np.testing.assert_allclose(out["se"], se, **within)
            np.testing.assert_allclose(out["covariance"], variance[:, None, None] * inverse,
                                       **within)
            np.testing.assert_allclose(out["residuals"], rest, **within)
            np.testing.assert_allclose(out["fitted"], wide @ x, **within)
            total = (abs(b.astype("c16"))**2).sum(0)
            np.testing.assert_allclose(out["report_r_squared"], 1 - variance * 27 / total, **within)
            self.assertLessEqual(out["report_orthogonality"].max(), U[kind] * 30)
            # Of the residuals as they are stored, whose rounding is what there is to measure.
            stored = out["residuals"].astype("c16")
            measured = np.linalg.norm(wide.conj().T @ stored, axis=0) / (
                np.linalg.norm(wide) * np.linalg.norm(stored, axis=0))
            np.testing.assert_allclose(out["report_orthogonality"], measured, rtol=1e-6, atol=1e-16)
            self.assertEqual(list(out["report_degrees_of_freedom"]), [27, 27])

    def test_precision(self):
        a, b = self.draw(9, 4), self.draw(9)
        x = self.solve(a, b, "--precision", "single")["X"]
        self.assertEqual(x.dtype, np.dtype("c8"))
        np.testing.assert_allclose(x, np.linalg.lstsq(a, b, rcond=None)[0], atol=1e-5)
        x = self.solve(a.astype("c8"), b.astype("c8"), "--precision", "double")["X"]
        self.assertEqual(x.dtype, np.dtype("c16"))

    def test_real_beside_complex(self):
        """What is real is read as complex: x of a real A and a complex b is complex."""
        a, b = self.draw(9, 4), self.draw(9)
        for left, right in ((a.real, b), (a, b.real)):
            x = self.solve(left, right)["X"]
            np.testing.assert_allclose(x, np.linalg.lstsq(left, right, rcond=None)[0], atol=1e-13)

    # ---- rows of one tall system

    def test_tall_systems_have_the_same_bits_in_any_memory(self):
        """With a mean far from 0, weights, gaps, a ridge, many sides, as columns and as rows."""
        m, n = 30000, 5
        a, b = self.draw(m, n) + 7, self.draw(m, 3)
        a[17, 2], b[29999, 1] = complex(1, np.nan), complex(np.nan, 1)
        w = self.random.random((m, 3))
        np.save("w.npy", w)
        np.save("c.npy", np.ascontiguousarray(b.T))
        whole = ["--residuals", "--fitted", "--covariance"]
        for options in (["--missing", "skip", *whole], ["--missing", "skip", "--ridge", "0.5"],
                        ["--missing", "skip", "--weights", "w.npy", *whole]):
            found = []
            for memory in ("12MiB", "1GiB"):
                out = self.solve(a, b, *options, "--memory", memory, verify=False)
                found.append({name: out[name].tobytes() for name in out if name != "qrtool"})
                self.assertEqual(json.loads(str(out["qrtool"]))["variant"], "cpu/tall")
            self.assertEqual(found[0], found[1])
            run("verify", "a.npy", "b.npy", "x.npz", "--memory", "12MiB",
                *(["--weights", "w.npy"] if "--weights" in options else []))
            for c in range(3):
                rows = np.arange(m) != 17
                rows[29999] = c != 1
                root = np.sqrt(w[rows, c] if "--weights" in options else np.ones(rows.sum()))
                left, right = root[:, None] * a[rows], root * b[rows, c]
                if "--ridge" in options:
                    left = np.vstack([left, np.sqrt(0.5) * np.eye(n)])
                    right = np.append(right, np.zeros(n))
                x = np.linalg.lstsq(left, right, rcond=None)[0]
                np.testing.assert_allclose(out["X"][:, c], x, atol=1e-12)
                if "--ridge" in options:
                    continue
                rest = b[rows, c] - a[rows] @ x
                np.testing.assert_allclose(out["residuals"][rows, c], rest, atol=1e-10)
                np.testing.assert_allclose(out["fitted"][rows, c], a[rows] @ x, atol=1e-10)
                for part in (out["residuals"].real, out["residuals"].imag):
                    self.assertTrue(np.isnan(part[~rows, c]).all())
                variance = (root**2 * abs(rest)**2).sum() / (rows.sum() - n)
                inverse = np.linalg.inv(left.conj().T @ left)
                np.testing.assert_allclose(out["se"][:, c],
                                           np.sqrt(variance * np.diag(inverse).real), rtol=1e-9)
                np.testing.assert_allclose(out["covariance"][c], variance * inverse, rtol=1e-6,
                                           atol=1e-12)
                self.assertLessEqual(out["report_orthogonality"][c], 30 * n * U["c16"])
                total = (root**2 * abs(b[rows, c])**2).sum()
                np.testing.assert_allclose(out["report_r_squared"][c],
                                           1 - variance * (rows.sum() - n) / total, atol=1e-12)
        wrong = out["residuals"].copy()
        wrong[5, 2] += 1e-6j
        np.savez("wrong.npz", **{**out, "residuals": wrong})
        self.assertIn("not b - A x", run("verify", "a.npy", "b.npy", "wrong.npz", "--weights",
                                         "w.npy", "--memory", "12MiB", status=1).stdout)
        as_columns = self.solve(a, b, "--missing", "skip")
        as_rows = self.solve(a, b.T.copy(), "--missing", "skip", "--rows", "last", "--memory",
                             "12MiB")
        self.assertEqual(as_columns["X"].T.tobytes(), as_rows["X"].tobytes())

    def test_tall_systems_of_every_size_and_rank(self):
        m, n = 20000, 4
        a, b = self.draw(m, n, kind="c8"), self.draw(m, kind="c8") + np.complex64(3 - 2j)
        for options in ([], ["--intercept"]):
            out = self.solve(a, b, *options, verify=False)
            left = np.hstack([np.ones((m, 1)), a]) if options else a
            x = np.linalg.lstsq(left, b, rcond=None)[0]
            np.testing.assert_allclose(out["X"], x, atol=1e-5)
            around = (b - b.mean() if options else b).astype("c16")
            self.assertAlmostEqual(float(out["report_r_squared"]),
                                   1 - (norm(b - left @ x) / norm(around))**2, delta=1e-6)
        a, b = a.astype("c16"), b.astype("c16")
        plain = self.solve(a, b, "--residuals")
        for power in (2.0**-900, 2.0**500):
            out = self.solve(a * power, b * power, "--residuals")
            np.testing.assert_array_equal(out["X"], plain["X"])
            np.testing.assert_allclose(out["residuals"] / power, plain["residuals"], rtol=1e-12)
            np.testing.assert_allclose(out["report_r_squared"], plain["report_r_squared"],
                                       atol=1e-12)
        a[:, 3] = a[:, 1] * 1j
        out = self.solve(a, b)
        self.assertEqual(int(out["report_rank"]), 3)
        np.testing.assert_allclose(out["X"], np.linalg.lstsq(a, b, rcond=1e-10)[0], atol=1e-12)
        b[5] = complex(0, np.inf)
        out = self.solve(a, b, status=1)
        self.assertEqual(int(out["report_status"]), 2)

    # ---- verify

    def test_verify_sees_what_is_wrong(self):
        a, b = self.draw(3, 9, 4), self.draw(3, 9)
        x = self.solve(a, b, "--residuals")["X"]
        np.save("n.npy", np.stack([np.linalg.lstsq(p, q, rcond=None)[0] for p, q in zip(a, b)]))
        run("verify", "a.npy", "b.npy", "n.npy")
        for wrong in (x.conj(), x * (1 + 1e-9j)):
            np.save("w.npy", wrong)
            done = run("verify", "a.npy", "b.npy", "w.npy", "--json", status=1)
            self.assertEqual(json.loads(done.stdout)["check"]["failed"], 3)
        np.save("r.npy", x.real)
        run("verify", "a.npy", "b.npy", "r.npy", status=1)

    # ---- files

    def test_formats(self):
        a, b = self.draw(3, 6, 2), self.draw(3, 6)
        reference = np.stack([np.linalg.lstsq(p, q, rcond=None)[0] for p, q in zip(a, b)])
        with h5py.File("s.h5", "w") as file:
            file["A"], file["b"] = a, b
        run("solve", "s.h5:/A", "s.h5:/b", "x.h5")
        run("verify", "s.h5:/A", "s.h5:/b", "x.h5")
        with h5py.File("x.h5") as file:
            np.testing.assert_allclose(file["X"][...], reference, atol=1e-13)
        matlab = np.dtype([("real", "f8"), ("imag", "f8")])
        with h5py.File("m.h5", "w") as file:
            file["A"] = np.ascontiguousarray(a).view(matlab).reshape(a.shape)
            file["b"] = np.ascontiguousarray(b).view(matlab).reshape(b.shape)
        run("solve", "m.h5:/A", "m.h5:/b", "x.h5", "-f", "--residuals")
        run("verify", "m.h5:/A", "m.h5:/b", "x.h5")
        with h5py.File("x.h5") as file:
            self.assertEqual(file["X"].dtype.names, ("real", "imag"))
            np.testing.assert_allclose(file["X"]["imag"], reference.imag, atol=1e-13)
            np.testing.assert_allclose(
                file["residuals"]["real"],
                (b - np.einsum("bij,bj->bi", a, reference)).real, atol=1e-13)
        np.savetxt("a.csv", a[0], delimiter=",")
        np.savetxt("b.csv", b[0], delimiter=",")
        for name in ("x.csv", "x.mtx", "x.npy"):
            run("solve", "a.csv", "b.csv", name, "-f", "--residuals", "--fitted")
            run("verify", "a.csv", "b.csv", name)
        x = np.loadtxt("x.X.csv", dtype=complex, ndmin=1)
        np.testing.assert_allclose(x, reference[0], atol=1e-13)
        np.testing.assert_allclose(np.load("x.residuals.npy")[:, 0], b[0] - a[0] @ reference[0],
                                   atol=1e-13)
        for name, words in (("residuals", "not b - A x"), ("fitted", "not A x")):
            for out in ("x.npy", "x.h5"):
                run("solve", "a.csv", "b.csv", out, "-f", f"--{name}")
                run("verify", "a.csv", "b.csv", out)
            wrong = np.load(f"x.{name}.npy")
            wrong[2] += 1e-9j
            np.save(f"x.{name}.npy", wrong)
            self.assertIn("of different runs",
                          run("verify", "a.csv", "b.csv", "x.npy", status=3).stderr)
            with h5py.File("x.h5", "r+") as file:
                file[name][...] = file[name][...] + 1e-9j * (np.arange(len(wrong)) == 2)[:, None]
            self.assertIn(words, run("verify", "a.csv", "b.csv", "x.h5", status=1).stdout)

    def test_dry_run_says_what_would_run(self):
        np.save("a.npy", self.draw(100, 8, 4, kind="c8"))
        np.save("b.npy", self.draw(100, 8, kind="c8"))
        said = run("solve", "a.npy", "b.npy", "x.h5", "--dry-run").stdout
        self.assertIn("complex64", said)
        self.assertIn("cpu/complex", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
