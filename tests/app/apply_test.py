#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""apply: Q'B, QB, R^-1 B and R^-H B of stored factors are NumPy's, and LAPACK's ormqr with
reflectors, within a bar that is measured here again; a wrong factor, and wrong uses, are found."""
import json
import os
import subprocess
import sys
import unittest

import h5py
import numpy as np
import scipy.linalg

from tool import FolderTest, limited, peak_kib, run, said

U = {"f4": 2.0**-23, "f8": 2.0**-52, "c8": 2.0**-23, "c16": 2.0**-52}
PRODUCTS = ("qt", "q", "rinv", "rinvt")
SHAPES = ((1, 1), (3, 3), (40, 7), (130, 64), (600, 3), (300, 100))


def adjoint(a):
    return a.conj().swapaxes(-1, -2)


def norm(x, axis=None):
    return np.sqrt((np.abs(x)**2).sum(axis=axis))


def bar(kind, m, n):
    return U[kind] * min(max(m, 16), 30 * min(m, n))


class Products(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(70)

    def draw(self, *shape, kind="f8"):
        x = self.random.standard_normal(shape)
        return (x + 1j * self.random.standard_normal(shape) if kind[0] == "c" else x).astype(kind)

    def factor(self, a, name="f.npz", *options):
        np.save("a.npy", a)
        run("factor", "a.npy", name, "-f", *options)
        if not name.endswith(".npz"):
            return None
        with np.load(name) as out:
            return dict(out)

    def apply(self, b, product, *options, factors="f.npz", status=0):
        np.save("b.npy", b)
        if b.ndim == 2 and "--rows" not in options:  # a square B fits in two ways
            options = (*options, "--rows", "matrix")
        run("apply", factors, "b.npy", "x.npz", "-f", "--with", product, *options, status=status)
        with np.load("x.npz") as out:
            return dict(out)

    def assert_near(self, x, wanted, within, reference):
        """Every column of x, in float64."""
        wide = "c16" if x.dtype.kind == "c" else "f8"
        error = norm(x.astype(wide) - wanted, -2)
        self.assertTrue((error <= within * reference).all(), (error / reference, within))

    # ---- beside NumPy and LAPACK

    def test_products_with_q_of_every_mode_and_type(self):
        for kind in U:
            for m, n in (*SHAPES, (5, 9)):
                a, k = self.draw(m, n, kind=kind), min(m, n)
                for mode in ("reduced", "complete"):
                    q = self.factor(a, "f.npz", "--mode", mode)["Q"]
                    wide = q.astype("c16" if kind[0] == "c" else "f8")
                    for product, given in (("qt", self.draw(m, 3, kind=kind)),
                                           ("q", self.draw(q.shape[1], 3, kind=kind))):
                        with self.subTest(kind=kind, m=m, n=n, mode=mode, product=product):
                            out = self.apply(given, product)
                            wanted = (adjoint(wide) if product == "qt" else wide) @ given
                            self.assertEqual(out["X"].dtype, np.dtype(kind))
                            self.assert_near(out["X"], wanted, bar(kind, m, k), norm(given, -2))
                            self.assertTrue((out["report_status"] == 0).all())
                            self.assertLessEqual(out["report_backward_error"].max(),
                                                 bar(kind, m, n))

    def test_reflectors_are_applied_as_by_ormqr(self):
        for kind, letter in (("f4", "s"), ("f8", "d"), ("c8", "c"), ("c16", "z")):
            is_complex = kind[0] == "c"
            ormqr = getattr(scipy.linalg.lapack, letter + ("unmqr" if is_complex else "ormqr"))
            for m, n in (*SHAPES, (5, 9)):
                out = self.factor(self.draw(m, n, kind=kind), "f.npz", "--mode", "raw")
                v, tau = out["V"], out["tau"]
                for product, trans in (("qt", "C" if is_complex else "T"), ("q", "N")):
                    with self.subTest(kind=kind, m=m, n=n, product=product):
                        b = self.draw(m, 4, kind=kind)
                        reference = ormqr("L", trans, np.asfortranarray(v[:, :min(m, n)]), tau,
                                          np.asfortranarray(b), 64 * max(m, 4))[0]
                        found = self.apply(b, product)
                        self.assertEqual(found["X"].shape, (m, 4))
                        self.assert_near(found["X"], reference, 4 * bar(kind, m, n), norm(b, -2))
                        self.assertTrue((found["report_status"] == 0).all())

    def test_products_with_the_inverse_of_r(self):
        for kind in U:
            for m, n in SHAPES[::2]:
                a = self.draw(m, n, kind=kind)
                for options in (("--mode", "reduced"), ("--mode", "r"), ("--mode", "raw"),
                                ("--pivot",)):
                    out = self.factor(a, "f.npz", *options)
                    r = np.triu((out["R"] if "R" in out else out["V"])[:n])
                    r = r.astype("c16" if kind[0] == "c" else "f8")
                    order = out.get("P", np.arange(n))
                    for product in ("rinv", "rinvt"):
                        with self.subTest(kind=kind, m=m, n=n, options=options, product=product):
                            b = self.draw(n, 3, kind=kind)
                            found = self.apply(b, product)
                            x = found["X"].astype(r.dtype)
                            left = r @ x[order] - b if product == "rinv" else \
                                adjoint(r) @ x - b[order]
                            errors = norm(left, -2) / (norm(r) * norm(x, -2))
                            self.assertLessEqual(errors.max(), U[kind] * max(n, 16))
                            if kind in ("f4", "c8"):  # the others are rounding errors here
                                np.testing.assert_allclose(found["report_backward_error"], errors,
                                                           rtol=1e-3)

    def test_a_pivoted_product_solves_and_whitens(self):
        a, b = self.draw(50, 6), self.draw(50, 2)
        out = self.factor(a, "f.npz", "--pivot")
        y = self.apply(b, "qt")["X"]
        x = self.apply(y, "rinv")["X"]
        np.testing.assert_allclose(x, np.linalg.lstsq(a, b, rcond=None)[0], rtol=1e-10)
        white = self.apply(a.T, "rinvt")["X"].T  # A P R^-1 = Q
        np.testing.assert_allclose(white, out["Q"], atol=1e-12)

    def test_one_factor_serves_many_and_many_serve_one(self):
        a = self.draw(4, 3, 20, 5)
        q = self.factor(a)["Q"]
        for shape in ((20,), (4, 3, 20), (4, 3, 20, 2), (3, 20, 7), (1, 1, 20, 1)):
            with self.subTest(shape=shape):
                b = self.draw(*shape)
                columns = b[..., None] if shape in ((20,), (4, 3, 20)) else b
                wanted = adjoint(q) @ columns
                wanted = wanted[..., 0] if shape in ((20,), (4, 3, 20)) else wanted
                np.testing.assert_allclose(self.apply(b, "qt")["X"], wanted, atol=1e-13)
        q = self.factor(a[0, 0])["Q"]
        for shape, rows, wanted in (
                ((20, 6, 7), "first", lambda b: np.tensordot(q.T, b, 1)),
                ((150, 20), "last", lambda b: b @ q), ((9, 20, 2), "matrix", lambda b: q.T @ b)):
            with self.subTest(shape=shape, rows=rows):
                b = self.draw(*shape)
                found = self.apply(b, "qt", "--rows", rows)
                np.testing.assert_allclose(found["X"], wanted(b), atol=1e-13)

    def test_every_format_of_factors_and_of_outputs(self):
        a, b = self.draw(30, 4), self.draw(30, 2)
        np.save("b.npy", b)
        np.savetxt("b.csv", b, delimiter=",")
        for name in ("f.h5", "f.npy", "f.npz", "f.csv", "f.mtx"):
            for mode in ("reduced", "raw"):
                run("factor", "a.npy" if self.factor(a) else "", name, "-f", "--mode", mode)
                for given, out in (("b.npy", "x.h5"), ("b.csv", "x.npy"), ("b.npy", "x.csv")):
                    run("apply", name, given, out, "-f")
                with h5py.File("x.h5") as file:
                    x = file["X"][:]
                    self.assertEqual(file["report/status"][:].tolist(), [0, 0])
                    self.assertEqual(file.attrs["with"], "qt")
                np.testing.assert_allclose(np.load("x.X.npy"), x, atol=1e-13)
                np.testing.assert_allclose(np.loadtxt("x.X.csv", delimiter=","), x, atol=1e-13)
                self.assertEqual(json.loads(open("x.report.json").read())["qrtool"]["with"], "qt")
                text = run("apply", name, "b.npy", "-").stdout
                np.testing.assert_allclose(np.loadtxt(text.splitlines(), delimiter=","), x,
                                           atol=1e-13)
        self.assertIn("apply", said("info", "x.h5", "-v"))

    def test_columns_of_matlab(self):
        a, b = self.draw(6, 20, 4), self.draw(6, 20, 3)
        with h5py.File("m.h5", "w") as file:
            file["A"], file["b"] = a.swapaxes(-1, -2), b.swapaxes(-1, -2)
        run("factor", "m.h5:/A", "f.h5", "--order", "column")
        run("apply", "f.h5", "m.h5:/b", "x.h5")
        with h5py.File("x.h5") as file, h5py.File("f.h5") as f:
            np.testing.assert_allclose(file["X"][:], b.swapaxes(-1, -2) @
                                       f["Q"][:].swapaxes(-1, -2).conj(), atol=1e-13)

    # ---- whatever the memory and the threads

    def test_bits_do_not_depend_on_memory_and_threads(self):
        a, wide, rows = self.draw(3000, 16), self.draw(3000, 130), self.draw(700, 16)
        self.factor(a)
        np.save("b.npy", wide)
        self.assertIn("rows of Q at a time", said("apply", "f.npz", "b.npy", "x.npz", "--memory",
                                                  "4MiB", "--dry-run"))
        for b, product, options in ((wide, "qt", ()), (self.draw(16, 130), "q", ()),
                                    (rows, "rinvt", ("--rows", "last"))):
            wanted = self.apply(b, product, *options)
            for more in (("--threads", "1"), ("--threads", "3"), ("--memory", "9MiB"),
                         ("--memory", "4MiB")):
                found = self.apply(b, product, *options, *more)
                for name in ("X", "report_backward_error", "report_status"):
                    np.testing.assert_array_equal(found[name], wanted[name], (product, more))

    def test_memory_is_bounded(self):
        a, b = self.draw(200000, 16), self.draw(200000, 4)
        self.factor(a, "f.h5")
        np.save("b.npy", b)
        plan = said("apply", "f.h5", "b.npy", "x.npy", "--memory", "12MiB", "--dry-run")
        self.assertIn("rows of Q at a time", plan)
        self.assertEqual([name for name in os.listdir() if name.startswith("x")], [])
        base = peak_kib("apply", "f.h5", "b.npy", "x.npy", "--memory", "12MiB", "--dry-run")
        peak = peak_kib("apply", "f.h5", "b.npy", "x.npy", "--memory", "12MiB")
        self.assertLess(peak - base, 12 << 10)
        with h5py.File("f.h5") as file:
            np.testing.assert_allclose(np.load("x.X.npy"), file["Q"][:].T @ b, atol=1e-11)
        self.factor(self.draw(2000, 1000), "v.npz", "--mode", "raw")
        np.save("b.npy", b[:2000])
        self.assertIn("--memory", said("apply", "v.npz", "b.npy", "y.npy", "--memory", "12MiB",
                                       status=6))

    def test_a_full_disk_leaves_nothing(self):
        self.factor(self.draw(400, 300), "f.npy")
        np.save("b.npy", self.draw(400, 300))
        run("apply", "f.npy", "b.npy", "x.npy", status=5, preexec_fn=limited(1 << 14))
        self.assertEqual([name for name in os.listdir() if name.startswith("x")], [])

    # ---- hard numbers

    def test_a_bad_matrix_and_a_bad_side_stay_alone(self):
        a = self.draw(5, 8, 3)
        out = self.factor(a)
        b = self.draw(5, 3, 2)
        wanted = self.apply(b, "rinv")["X"]
        out["R"][1, 2, 2], out["R"][2, 0, 0], b[3, 1, 1] = 0, np.nan, np.inf
        np.savez("g.npz", Q=out["Q"], R=out["R"])
        for product in ("rinv", "rinvt"):
            found = self.apply(b, product, factors="g.npz", status=1)
            self.assertEqual(found["report_status"].tolist(),
                             [[0, 0], [3, 3], [2, 2], [0, 2], [0, 0]])
            self.assertTrue(np.isnan(found["X"][1:3]).all() and np.isnan(found["X"][3, :, 1]).all())
            if product == "rinv":
                np.testing.assert_array_equal(found["X"][[0, 4]], wanted[[0, 4]])
                np.testing.assert_array_equal(found["X"][3, :, 0], wanted[3, :, 0])
        text = said("apply", "g.npz", "b.npy", "y.npz", "--with", "rinv", status=1)
        self.assertIn("R has a zero on its diagonal", text)
        self.assertIn("hold NaN or Inf", text)
        out = self.factor(a, "f.npz", "--mode", "raw")
        b = self.draw(5, 8, 2)
        b[3, 1, 1] = np.nan
        out["tau"][2, 1] = np.inf
        np.savez("g.npz", V=out["V"], tau=out["tau"])
        for factors, statuses in (("g.npz", [[0, 0], [0, 0], [2, 2], [0, 2], [0, 0]]),):
            for product in ("qt", "q"):
                found = self.apply(b, product, factors=factors, status=1)
                self.assertEqual(found["report_status"].tolist(), statuses)
                self.assertEqual(np.isnan(found["X"]).all(-2).tolist(),
                                 [[s == 2 for s in each] for each in statuses])

    def test_sizes_of_numbers(self):
        for kind, sizes in (("f8", (1e-300, 1e-160, 1e160, 1e300)), ("f4", (1e-36, 1e30))):
            for size in sizes:
                a, b = self.draw(40, 5), self.draw(40, 2)
                for mode in ("reduced", "raw"):
                    self.factor((a * size).astype(kind), "f.npz", "--mode", mode)
                    with self.subTest(kind=kind, size=size, mode=mode):
                        found = self.apply((b * size).astype(kind), "qt")
                        x = self.apply(found["X"][:5], "rinv")["X"]
                        np.testing.assert_allclose(
                            x, np.linalg.lstsq(a, b, rcond=None)[0], rtol=1e5 * U[kind])

    def test_rows_that_are_alike_and_few_rows(self):
        for m, n, kind in ((200, 64, "f8"), (4000, 1, "f8"), (16, 16, "c16"), (40, 30, "f8"),
                           (3000, 2, "c16")):
            a = np.ones((m, n)) + 1e-9 * self.draw(m, n, kind=kind)
            for mode in ("reduced", "raw"):
                self.factor(a.astype(kind), "f.npz", "--mode", mode)
                for product, rows in (("qt", m), ("q", m if mode == "raw" else n)):
                    with self.subTest(m=m, n=n, mode=mode, product=product):
                        out = self.apply(np.full((rows, 2), 0.1, kind), product)
                        self.assertTrue((out["report_status"] == 0).all())

    # ---- what is wrong is found

    def test_wrong_factors_miss_the_bar(self):
        a, b = self.draw(60, 5), self.draw(60, 2)
        out = self.factor(a)
        for change in (lambda q: q * 1.001, lambda q: q + 1e-6 * self.draw(60, 5),
                       lambda q: np.zeros_like(q) + q[:, :1]):
            np.savez("g.npz", Q=change(out["Q"]), R=out["R"])
            for product, given in (("qt", b), ("q", b[:5])):
                found = self.apply(given, product, factors="g.npz", status=1)
                self.assertTrue((found["report_status"] == 1).all(), product)
        raw = self.factor(a, "f.npz", "--mode", "raw")
        np.savez("g.npz", V=raw["V"], tau=raw["tau"] * 1.001)
        for product in ("qt", "q"):
            found = self.apply(b, product, factors="g.npz", status=1)
            self.assertTrue((found["report_status"] == 1).all())

    def assert_refused(self, status, message, hint, *args):
        """The message, and a hint that names what to do."""
        text = said("apply", *args, status=status)
        self.assertIn(message, text)
        self.assertIn(hint, text)
        self.assertFalse([name for name in os.listdir() if name.startswith("x.")])

    def test_wrong_uses(self):
        a = self.draw(7, 4)
        for name, options in (("q.npz", ()), ("r.npz", ("--mode", "r")),
                              ("c.npz", ("--mode", "complete"))):
            self.factor(a, name, *options)
        self.factor(a.T, "wide.npz")
        self.factor(a.T, "rawwide.npz", "--mode", "raw")
        self.factor(self.draw(7, 4, kind="c16"), "z.npz")
        np.save("b.npy", self.draw(7, 2))
        np.save("z.npy", self.draw(7, 2, kind="c16"))
        np.save("k.npy", self.draw(4, 2))
        refused = self.assert_refused
        refused(3, "b.R.npy", "the factors come first, then B: qrtool apply q.npz b.npy x.npy",
                "b.npy", "q.npz", "x.npy")
        refused(3, "r.npz: holds R alone, and --with qt needs Q", "--mode reduced", "r.npz",
                "b.npy", "x.npy")
        refused(3, "wide.npz: R is 4x7: A has fewer rows than columns", "qrtool solve", "wide.npz",
                "b.npy", "x.npy", "--with", "rinv")
        refused(3, "rawwide.npz: V is 4x7", "qrtool solve", "rawwide.npz", "b.npy", "x.npy",
                "--with", "rinvt")
        refused(3, "c.npz: R is 7x4, as --mode complete gives it", "--mode reduced, r or raw",
                "c.npz", "k.npy", "x.npy", "--with", "rinv")
        refused(3, "k.npy: B is 4x2, and Q in q.npz is 7x4: the shapes do not fit",
                "for --with qt B needs a dimension of 7", "q.npz", "k.npy", "x.npy")
        refused(3, "B is complex128, and the factors in q.npz are float64", "imaginary part",
                "q.npz", "z.npy", "x.npy")
        refused(3, "B is float64, and the factors in z.npz are complex128", "astype(complex)",
                "z.npz", "b.npy", "x.npy")
        refused(2, "qtb", "qt", "q.npz", "b.npy", "x.npy", "--with", "qtb")
        refused(2, "the same file", "", "q.npz", "b.npy", "q.npz", "-f")
        refused(2, "OUT is missing", "qrtool apply --help", "q.npz", "b.npy")
        refused(3, "none.npz", "", "none.npz", "b.npy", "x.npy")
        np.save("s.npy", self.draw(7, 7))
        refused(2, "fits in 2 ways", "--rows last", "q.npz", "s.npy", "x.npy")
        run("factor", "a.npy", "s.npy")
        before = open("s.Q.npy", "rb").read()
        refused(2, "the same file", "", "s.npy", "b.npy", "s.npy", "-f")
        self.assertEqual(open("s.Q.npy", "rb").read(), before)
        run("apply", "q.npz", "b.npy", "y.npy")
        self.assertIn("exists", said("apply", "q.npz", "b.npy", "y.npy", status=5))
        run("apply", "q.npz", "b.npy", "y.npy", "-f")
        self.assertIn("qrtool apply has checked", said("verify", "a.npy", "y.npy", status=2))

    def test_several_datasets_of_one_file(self):
        with h5py.File("a.h5", "w") as file:
            file["A"], file["g/B"] = self.draw(7, 4), self.draw(9, 4)
        run("factor", "a.h5", "f.h5", "--dataset", "/A", "--dataset", "/g/B")
        np.save("b.npy", self.draw(9))
        self.assert_refused(3, "f.h5: holds the factors of /A, /g/B", "f.h5:/A", "f.h5", "b.npy",
                            "x.npy")
        run("apply", "f.h5:/g/B", "b.npy", "x.npy")
        with h5py.File("f.h5") as file:
            np.testing.assert_allclose(np.load("x.X.npy"), file["Q/g_B" if "g_B" in file["Q"] else
                                                                "Q/g/B"][:].T @ np.load("b.npy"),
                                       atol=1e-13)

    def test_numbers_without_entries(self):
        for shape, b in (((0, 5, 3), (0, 5, 2)), ((4, 5, 0), (4, 5, 2)), ((4, 5, 3), (4, 5, 0))):
            with self.subTest(shape=shape):
                self.factor(np.zeros(shape) + 1.0)
                out = self.apply(np.ones(b), "qt")
                self.assertEqual(out["X"].shape, (shape[0], shape[2], b[2]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
