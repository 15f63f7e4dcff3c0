#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The columns of A that `qrtool solve` makes: --intercept for files of every format, --a and
--polynomial; and those of `factor`."""
import os
import signal
import subprocess
import sys
import time
import unittest

import h5py
import numpy as np

from tool import QRTOOL, FolderTest, limited, run, said


class Design(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(3)

    @staticmethod
    def results(path):
        with h5py.File(path) as file:
            return {name: file[name][...] for name in ("X", "se")} | {
                name: file["report/" + name][...] for name in file["report"]}

    def test_ones_before_the_columns(self):
        """The same bits as with a column of ones in the file."""
        for shape, rows in (((20, 3), "first"), ((50, 12, 4), "last"), ((3, 300, 40), "last"),
                            ((60000, 2), "first")):
            a = self.random.standard_normal(shape)
            b = self.random.standard_normal(shape[:-1] if len(shape) > 2 else (shape[0], 30))
            ones = np.concatenate([np.ones((*shape[:-1], 1)), a], axis=-1)
            with h5py.File("in.h5", "w") as file:
                file["A"], file["ones"], file["b"] = a, ones, b
            np.save("a.npy", a)
            np.save("f.npy", np.asfortranarray(a))
            run("solve", "in.h5:/ones", "in.h5:/b", "wanted.h5", "-f", "--rows", rows)
            wanted = self.results("wanted.h5")
            for name in ("in.h5:/A", "a.npy", "f.npy"):
                run("solve", name, "in.h5:/b", "x.h5", "-f", "--rows", rows, "--intercept")
                found = self.results("x.h5")
                for each, values in wanted.items():
                    if each != "r_squared":
                        np.testing.assert_array_equal(found[each], values, err_msg=each)
                run("verify", name, "in.h5:/b", "x.h5")
            axis = 0 if rows == "first" else -1
            total = np.sum((b - b.mean(axis, keepdims=True)) ** 2, axis)
            np.testing.assert_allclose(found["r_squared"],
                                       1 - found["residual_norm"] ** 2 / total, atol=1e-12)

    def test_factor_takes_ones_and_leaves_out_rows(self):
        """R is that of the rows without NaN, also by rows, of columns and of complex numbers."""
        for a in (self.random.standard_normal((3, 40, 4)), self.draw(3, 40, 4),
                  self.random.standard_normal((1, 30000, 3))):
            a[0, 5, 2] = a[0, 7] = np.nan
            np.save("a.npy", a)
            options = ("--intercept", "--missing", "skip", "--memory", "16MiB")
            for name in ("q.h5", "q.npz", "q.csv") if a.shape[0] > 1 else ("q.h5",):
                run("factor", "a.npy", name, "-f", *options)
                run("verify", "a.npy", name, *(options[:3] if name == "q.csv" else ()))
            with h5py.File("q.h5") as file:
                q, r = file["Q"][...], file["R"][...]
            for each, its_q, its_r in zip(a, q, r):
                kept = ~np.isnan(each).any(axis=1)
                ones = np.column_stack([np.ones(len(each)), each])[kept]
                np.testing.assert_allclose(np.abs(its_r), np.abs(np.linalg.qr(ones)[1]), atol=1e-10)
                np.testing.assert_allclose(its_q[kept] @ its_r, ones, atol=1e-12)
                self.assertFalse(its_q[~kept].any())
        run("factor", "a.npy", "q.h5", "-f", "--missing", "error", status=1)

    def draw(self, *shape):
        parts = self.random.standard_normal((2, *shape))
        return parts[0] + 1j * parts[1]

    def test_factors_of_a_design_that_end_early_leave_nothing(self):
        command = [QRTOOL, "factor", "-", "q.h5", "--intercept", "--missing", "skip"]
        rows = "".join(f"{i % 7},{i % 11}\n" for i in range(20000)) + ",1\n"
        full = subprocess.run(command, input=rows, check=False, capture_output=True, text=True,
                              preexec_fn=limited(100000))
        self.assertEqual(full.returncode, 5, full.stderr)
        self.assertEqual(os.listdir("."), [])
        # In a pipe that does not end, the tool has read rows when it is killed.
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as tool:
            tool.stdin.write(rows.encode()[:20000])
            tool.stdin.flush()
            time.sleep(0.3)
            tool.send_signal(signal.SIGTERM)
        self.assertNotEqual(tool.returncode, 0)
        self.assertEqual(os.listdir("."), [])
        subprocess.run(command, input=rows, check=True, capture_output=True, text=True)
        self.assertEqual(os.listdir("."), ["q.h5"])

    def test_ones_before_complex_columns(self):
        """A complex A or b, or both: bits of ones in the file, and R^2 around a complex mean."""
        for shape, rows in (((20, 3), "first"), ((50, 12, 4), "last"), ((3, 300, 40), "last")):
            for a, b in ((self.draw(*shape), self.draw(*shape[:-1])),
                         (self.random.standard_normal(shape), 7j + self.draw(*shape[:-1])),
                         (self.draw(*shape), self.random.standard_normal(shape[:-1]))):
                ones = np.concatenate([np.ones((*shape[:-1], 1)), a], axis=-1)
                with h5py.File("in.h5", "w") as file:
                    file["A"], file["ones"], file["b"] = a, ones, b
                np.save("f.npy", np.asfortranarray(a))
                run("solve", "in.h5:/ones", "in.h5:/b", "wanted.h5", "-f")
                wanted = self.results("wanted.h5")
                for name in ("in.h5:/A", "f.npy"):
                    run("solve", name, "in.h5:/b", "x.h5", "-f", "--intercept", "--leverage")
                    found = self.results("x.h5")
                    for each, values in wanted.items():
                        if each != "r_squared":
                            np.testing.assert_array_equal(found[each], values, err_msg=each)
                    run("verify", name, "in.h5:/b", "x.h5")
                total = np.sum(abs(b - b.mean(-1, keepdims=True)) ** 2, -1)
                np.testing.assert_allclose(found["r_squared"],
                                           1 - found["residual_norm"] ** 2 / total, atol=1e-12)

    def test_r_squared_around_a_complex_mean(self):
        """With weights and missing rows, far from 0, and of a constant b, which has none."""
        a, b, w = self.draw(40, 2), 1e6 * (3 - 4j) + self.draw(40), self.random.uniform(0, 2, 40)
        b[5], a[7, 1], w[9] = complex(1, np.nan), complex(np.nan, 1), 0
        np.save("a.npy", a)
        np.save("b.npy", b)
        np.save("w.npy", w)
        run("solve", "a.npy", "b.npy", "x.h5", "--intercept", "--weights", "w.npy", "--missing",
            "skip", "--residuals")
        run("verify", "a.npy", "b.npy", "x.h5", "--weights", "w.npy")
        found = self.results("x.h5")
        w[[5, 7]] = 0
        a, b = np.nan_to_num(a), np.nan_to_num(b)
        root = np.sqrt(w)
        x = np.linalg.lstsq(np.column_stack([np.ones(40), a]) * root[:, None], b * root,
                            rcond=None)[0]
        np.testing.assert_allclose(found["X"], x, rtol=0, atol=1e-8)  # of 5e6
        total = np.sum(w * abs(b - np.sum(w * b) / w.sum()) ** 2)
        np.testing.assert_allclose(found["r_squared"], 1 - found["residual_norm"] ** 2 / total,
                                   rtol=1e-6)
        for constant in (0, 1 - 2j, 0.1 + 0.1j):
            np.save("b.npy", np.full(40, constant))
            np.save("a.npy", a)
            run("solve", "a.npy", "b.npy", "x.h5", "-f", "--intercept", "--weights", "w.npy")
            self.assertTrue(np.isnan(self.results("x.h5")["r_squared"]))
        np.save("b.npy", np.full(40, complex(np.inf, 1)))
        run("solve", "a.npy", "b.npy", "x.h5", "-f", "--intercept", status=1)
        self.assertTrue(np.isnan(self.results("x.h5")["r_squared"]))

    def test_powers_of_complex_columns(self):
        t, b = self.draw(40), self.draw(40)
        np.save("t.npy", t[:, None])
        np.save("b.npy", b)
        run("solve", "t.npy", "b.npy", "x.h5", "--polynomial", "1:3", "--intercept")
        run("verify", "t.npy", "b.npy", "x.h5")
        columns = np.stack([t**k for k in range(4)], 1)
        np.testing.assert_allclose(self.results("x.h5")["X"],
                                   np.linalg.lstsq(columns, b, rcond=None)[0], rtol=1e-9)
        # Vectors of real numbers and a complex b.
        with h5py.File("in.h5", "w") as file:
            file["t"], file["u"], file["b"] = t.real, t.imag, b
        run("solve", "in.h5", "in.h5:/b", "x.h5", "-f", "--a", "t,u", "--polynomial", "t:2",
            "--intercept")
        run("verify", "in.h5", "in.h5:/b", "x.h5")
        with h5py.File("x.h5") as file:
            self.assertEqual(file.attrs["columns"], "(intercept),t,t^2,u")
        columns = np.stack([np.ones(40), t.real, t.real**2, t.imag], 1)
        np.testing.assert_allclose(self.results("x.h5")["X"],
                                   np.linalg.lstsq(columns, b, rcond=None)[0], rtol=1e-9)
        # A power that overflows is no missing number.
        t[3] = 1e200 + 1e200j
        np.save("t.npy", t[:, None])
        for missing in ("skip", "error"):
            run("solve", "t.npy", "b.npy", "x.h5", "-f", "--polynomial", "1:3", "--missing",
                missing, status=1)
            self.assertTrue(np.isnan(self.results("x.h5")["X"]).all())

    def test_a_ridge_leaves_it_alone(self):
        for turn in (1, 1 + 2j):
            a, b = self.random.standard_normal((30, 3)) * turn, 50 + self.draw(30)
            if turn == 1:
                b = b.real
            np.save("a.npy", a)
            np.save("b.npy", b)
            run("solve", "a.npy", "b.npy", "x.npy", "-f", "--intercept", "--ridge", "4")
            centred, mean = a - a.mean(0), a.mean(0)
            gram = centred.conj().T @ centred + 4 * np.eye(3)
            x = np.linalg.solve(gram, centred.conj().T @ (b - b.mean()))
            np.testing.assert_allclose(np.load("x.X.npy"), [b.mean() - mean @ x, *x], rtol=1e-10)

    def test_vectors_and_powers(self):
        t, u = self.random.uniform(1, 2, 40), self.random.standard_normal(40)
        b = self.random.standard_normal((40, 25))
        with h5py.File("in.h5", "w") as file:
            file["obs/t"], file["obs/u"], file["b"] = t, u, b
            file["short"], file["plane"] = u[1:], b
        np.savez("in.npz", t=t, u=u)
        columns = np.column_stack([np.ones(40), t, t * t, t * t * t, u])
        with h5py.File("a.h5", "w") as file:
            file["A"] = columns
        run("solve", "a.h5", "in.h5:/b", "wanted.h5", "--rows", "first")
        wanted = self.results("wanted.h5")["X"]
        for a, names in (("in.h5", "obs/t,/obs/u"), ("in.h5:/obs", "t,u"), ("in.npz", "t,u")):
            power = names.split(",", maxsplit=1)[0] + ":3"
            run("solve", a, "in.h5:/b", "x.h5", "-f", "--a", names, "--polynomial", power,
                "--intercept")
            np.testing.assert_array_equal(self.results("x.h5")["X"], wanted)
            run("verify", a, "in.h5:/b", "x.h5")
            with h5py.File("x.h5") as file:
                first, second = names.split(",")
                self.assertEqual(file.attrs["columns"],
                                 f"(intercept),{first},{first}^2,{first}^3,{second}")
        np.save("tu.npy", np.column_stack([t, u]))
        run("solve", "tu.npy", "in.h5:/b", "x.csv", "--polynomial", "1:3", "--intercept")
        np.testing.assert_array_equal(np.loadtxt("x.X.csv", delimiter=","), wanted)
        run("verify", "tu.npy", "in.h5:/b", "x.csv")
        for names, words in (("obs/t,short", "short has 39"), ("obs/t,plane", "plane is 40x25"),
                             ("obs/tt", "did you mean")):
            self.assertIn(words, said("solve", "in.h5", "in.h5:/b", "y.h5", "--a", names, status=3))
        self.assertIn("A has no column v", said("solve", "in.h5", "in.h5:/b", "y.h5", "--a",
                                                "obs/t", "--polynomial", "v:2", status=3))
        self.assertIn("v:2", said("solve", "in.h5", "in.h5:/b", "y.h5", "--a", "obs/t",
                                  "--polynomial", "v", status=2))

    def test_powers_of_a_table(self):
        t, u, y = self.random.standard_normal((3, 30))
        np.savetxt("t.csv", np.column_stack([t, u, y, y]), delimiter=",", header="t,u,y,z",
                   comments="")
        run("solve", "t.csv", "x.csv", "--response", "y", "--a", "t,u", "--polynomial", "t:2",
            "--intercept")
        with open("x.csv", encoding="utf-8") as file:
            rows = [line.strip().split(",") for line in file]
        self.assertEqual([row[0] for row in rows], ["term", "(intercept)", "t", "t^2", "u"])
        wanted = np.linalg.lstsq(np.column_stack([np.ones(30), t, t * t, u]), y, rcond=None)[0]
        np.testing.assert_allclose([float(row[1]) for row in rows[1:]], wanted, rtol=1e-9)
        run("verify", "t.csv", "x.csv", "--response", "y")
        self.assertIn("--a names a column that is the response",
                      said("solve", "t.csv", "y.csv", "--response", "y", "--a", "t,y", status=3))

    def test_a_number_counts_the_columns_of_the_file(self):
        y, t, u = self.random.standard_normal((3, 30))
        np.savetxt("t.csv", np.column_stack([y, t, u]), delimiter=",", header="y,t,u", comments="")
        for response in ("y", "1"):
            run("solve", "t.csv", "x.csv", "-f", "--response", response, "--polynomial", "2:2")
            with open("x.csv", encoding="utf-8") as file:
                self.assertEqual([line.split(",")[0] for line in file], ["term", "t", "t^2", "u"])
            run("verify", "t.csv", "x.csv", "--response", response)
        self.assertIn("its columns are t, u; a number counts the columns of the file",
                      said("solve", "t.csv", "z.csv", "--response", "y", "--polynomial", "1:2",
                           status=3))
        np.savetxt("a.csv", np.column_stack([y, t, u]), delimiter=",")
        np.save("b.npy", y)
        run("solve", "a.csv", "b.npy", "x.npz", "--columns", "2,3", "--polynomial", "3:2")
        wanted = np.linalg.lstsq(np.column_stack([t, u, u * u]), y, rcond=None)[0]
        np.testing.assert_allclose(np.load("x.npz")["X"], wanted, rtol=1e-9)

    def test_the_other_order_is_named(self):
        a, b = self.random.standard_normal((20, 3)), self.random.standard_normal(20)
        with h5py.File("in.h5", "w") as file:
            file["A"], file["b"] = a.T, b
        text = said("solve", "in.h5:/A", "in.h5:/b", "x.h5", "--intercept", status=3)
        self.assertIn("--order column would read A as 20x4", text)
        run("solve", "in.h5:/A", "in.h5:/b", "x.h5", "--intercept", "--order", "column")
        wanted = np.linalg.lstsq(np.column_stack([np.ones(20), a]), b, rcond=None)[0]
        np.testing.assert_allclose(self.results("x.h5")["X"], wanted, rtol=1e-10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
