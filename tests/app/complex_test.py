#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Complex matrices of NumPy, h5py, Octave, SciPy and MATLAB's layout go in, come back in the form
in which they came, and those programs read them and find the same errors."""
import json
import os
import shutil
import subprocess
import sys
import unittest

import h5py
import numpy as np
import xarray

from tool import FolderTest, run, said

U = {"c8": 2.0**-23, "c16": 2.0**-52}
OCTAVE = ["octave-cli", "--no-gui", "--norc", "--eval"]


def octave(code):
    subprocess.run([*OCTAVE, code], check=True, capture_output=True, timeout=120)


def json_of(*args, **options):
    return json.loads(run(*args, "--json", **options).stdout)


class ComplexMatrices(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(11)

    def draw(self, shape, kind="c16"):
        parts = [self.random.standard_normal(shape) for _ in range(2)]
        return (parts[0] + 1j * parts[1]).astype(kind)

    def check(self, a, q, r, positive=True):
        """Q and R are within the bar, and R has a real diagonal and nothing below it."""
        kind = a.dtype.str[1:]
        m, n = a.shape[-2:]
        bar = U[kind] * min(max(m, 16), 30 * min(m, n))
        self.assertEqual((q.dtype, r.dtype), (a.dtype, a.dtype))
        wide_a, wide_q, wide_r = (x.astype("c32" if hasattr(np, "complex256") else "c16")
                                  for x in (a, q, r))
        axes = (-2, -1)
        size = np.sqrt((abs(wide_a)**2).sum(axes))
        residual = np.sqrt((abs(wide_a - wide_q @ wide_r)**2).sum(axes)) / size
        gram = np.swapaxes(wide_q.conj(), *axes) @ wide_q - np.eye(q.shape[-1])
        self.assertLessEqual(residual.max(), bar)
        self.assertLessEqual(np.sqrt((abs(gram)**2).sum(axes)).max(), bar)
        diagonal = np.diagonal(r, axis1=-2, axis2=-1)
        self.assertTrue((diagonal.imag == 0).all())
        if positive:
            self.assertTrue((diagonal.real >= 0).all())
        self.assertTrue((np.tril(r, -1) == 0).all())

    # ---- .npy, .npz

    def test_npy_of_every_order_and_type(self):
        for kind in ("<c8", ">c8", "<c16", ">c16"):
            for shape in ((6, 4), (4, 6), (3, 5, 2), (2, 3, 4, 4), (40, 70)):
                for order in "CF":
                    with self.subTest(kind=kind, shape=shape, order=order):
                        a = self.draw(shape, kind)
                        np.save("a.npy", np.array(a, order=order))
                        run("factor", "a.npy", "o.npy", "-f")
                        native = a.astype(kind[1:])
                        self.check(native, np.load("o.Q.npy"), np.load("o.R.npy"))
                        run("verify", "a.npy", "o.npy")

    def test_large_matrices_by_columns(self):
        a = self.draw((600, 500), "c8")
        np.save("a.npy", np.asfortranarray(a))
        np.save("c.npy", a)
        for name in ("a", "c"):
            run("factor", f"{name}.npy", f"{name}o.npy", "--mode", "r")
        self.assertEqual(np.load("ao.R.npy").tobytes(), np.load("co.R.npy").tobytes())

    def test_precision_and_members(self):
        a = self.draw((3, 6, 4), "c16")
        np.savez("a.npz", a=a)
        run("factor", "a.npz", "o.npz", "--precision", "single")
        with np.load("o.npz") as out:
            self.check(a.astype("c8"), out["Q"], out["R"])
            self.assertEqual(json.loads(str(out["qrtool"]))["precision"], "single")
        np.savez("s.npz", a=a.astype("c8"))
        run("factor", "s.npz", "o.npz", "-f", "--precision", "double")
        with np.load("o.npz") as out:
            self.check(a.astype("c8").astype("c16"), out["Q"], out["R"])

    def test_shapes_without_numbers(self):
        for m, n in ((0, 3), (3, 0)):
            np.save("a.npy", np.zeros((m, n), "c16"))
            run("factor", "a.npy", "o.npy", "-f")
            q, r = np.load("o.Q.npy"), np.load("o.R.npy")
            self.assertEqual((q.shape, r.shape), ((m, 0), (0, n)))
            self.assertEqual((q.dtype, r.dtype), ("c16", "c16"))
        np.save("a.npy", np.zeros((0, 4, 2), "c8"))
        run("factor", "a.npy", "o.npy", "-f")
        self.assertEqual(np.load("o.Q.npy").shape, (0, 4, 2))

    # ---- modes

    def test_modes(self):
        a = self.draw((2, 7, 4))
        np.save("a.npy", a)
        run("factor", "a.npy", "c.npz", "--mode", "complete")
        with np.load("c.npz") as out:
            self.assertEqual((out["Q"].shape, out["R"].shape), ((2, 7, 7), (2, 7, 4)))
            self.check(a, out["Q"], out["R"])
        run("factor", "a.npy", "r.npz", "--mode", "r")
        run("verify", "a.npy", "r.npz")
        run("factor", "a.npy", "l.npz", "--sign", "lapack")
        with np.load("l.npz") as out:
            q, r = np.linalg.qr(a[0])
            np.testing.assert_allclose(out["R"][0], r, atol=1e-13)
            np.testing.assert_allclose(out["Q"][0], q, atol=1e-13)

    def test_a_device_that_is_asked_for(self):
        for kind in U:
            # PoCL has the kernels of this shape from gpu/complex.
            np.save("a.npy", self.draw((5, 20, 7), kind))
            for mode in ("reduced", "complete", "r", "raw"):
                options = ["--mode", mode, "--force"]
                run("factor", "a.npy", "cpu.npz", *options)
                by_gram = mode in ("reduced", "r")
                variant = "opencl/gram_group" if by_gram else "opencl/complex"
                done = json_of("factor", "a.npy", "device.npz", *options, "--variant", variant)
                self.assertEqual(done["backend"]["variant"], variant)
                run("verify", "a.npy", "device.npz")
                with np.load("cpu.npz") as cpu, np.load("device.npz") as device:
                    for name in {"Q", "R", "V", "tau"} & set(cpu.files):
                        self.assertEqual(cpu[name].dtype, device[name].dtype)
                        np.testing.assert_allclose(cpu[name], device[name], atol=60 * U[kind])

    def test_raw_is_that_of_zgeqrf(self):
        """numpy.linalg.qr(mode='raw') is zgeqrf: h is V transposed."""
        for kind in ("c8", "c16"):
            for shape in ((7, 4), (5, 5), (4, 9), (1, 1), (1, 3), (3, 1), (80, 60)):
                with self.subTest(kind=kind, shape=shape):
                    a = self.draw(shape, kind)
                    np.save("a.npy", a)
                    run("factor", "a.npy", "o.npz", "-f", "--mode", "raw")
                    h, tau = np.linalg.qr(a.astype("c16"), mode="raw")
                    with np.load("o.npz") as out:
                        atol = 100 * U[kind] * abs(h).max()
                        np.testing.assert_allclose(out["V"], h.T, atol=atol)
                        np.testing.assert_allclose(out["tau"], tau, atol=100 * U[kind])
                    run("verify", "a.npy", "o.npz")
                    np.savez("p.npz", V=np.ascontiguousarray(h.T), tau=tau)
                    np.save("w.npy", a.astype("c16"))
                    run("verify", "w.npy", "p.npz")

    def test_deficient_zero_tiny_huge_and_not_finite(self):
        a = self.draw((6, 5, 3), "c8")
        a[1] = 0
        a[2, :, 2] = a[2, :, 0] * 1j
        a[3] *= 1e-30
        a[4] *= 1e37 / abs(a[4]).max()
        a[5, 2, 1] = complex(0, np.nan)
        np.save("a.npy", a)
        self.assertIn("1 not finite", said("factor", "a.npy", "o.npz", status=1))
        with np.load("o.npz") as got:
            self.check(a[[0, 2, 3, 4]], got["Q"][[0, 2, 3, 4]], got["R"][[0, 2, 3, 4]])
            self.assertEqual(list(got["report_status"]), [0, 0, 0, 0, 0, 2])
            self.assertEqual(got["report_residual"][1], 0)
            self.assertTrue(np.isnan(got["Q"][5].real).all() and np.isnan(got["R"][5].imag).all())

    def test_bits_do_not_depend_on_company_threads_memory(self):
        a = self.draw((50, 30, 20), "c8")
        np.save("a.npy", a)
        np.save("one.npy", a[17])
        run("factor", "a.npy", "all.npz")
        run("factor", "one.npy", "one.npz", "--threads", "1")
        run("factor", "a.npy", "less.npz", "--threads", "1", "--memory", "32MiB")
        with np.load("all.npz") as every, np.load("one.npz") as one, np.load("less.npz") as less:
            self.assertEqual(every["Q"][17].tobytes(), one["Q"].tobytes())
            self.assertEqual(every["R"].tobytes(), less["R"].tobytes())

    # ---- HDF5

    def test_h5py(self):
        for kind in ("<c8", "<c16", ">c16"):
            a = self.draw((4, 9, 5), kind)
            for options in ({}, {"chunks": (2, 4, 3)}, {"compression": "gzip", "shuffle": True},
                            {"fletcher32": True}):
                with self.subTest(kind=kind, options=options):
                    with h5py.File("a.h5", "w") as file:
                        file.create_dataset("a", data=a, **options)
                    run("factor", "a.h5", "o.h5", "-f")
                    with h5py.File("o.h5") as file:
                        self.check(a.astype(kind[1:]), file["Q"][()], file["R"][()])
                        self.assertEqual(file["Q"].dtype, np.dtype(kind[1:]))
                    run("verify", "a.h5", "o.h5")

    def test_every_storage_of_real_numbers_is_one_of_complex(self):
        gaps = {"names": ["r", "i"], "offsets": [4, 16], "itemsize": 28}
        swapped = {"names": ["real", "imag"], "offsets": [8, 0], "itemsize": 16}
        types = ["<c8", ">c8", "<c16", ">c16", np.dtype({"formats": ["<f8"] * 2, **gaps}),
                 np.dtype({"formats": [">f4"] * 2, **gaps}),
                 np.dtype({"formats": ["<f8"] * 2, **swapped})]
        storages = [{}, {"fletcher32": True}, {"compression": "gzip"}, {"compression": "lzf"},
                    {"compression": "lzf", "shuffle": True, "fletcher32": True}]
        a = self.draw((5, 40, 7)).astype("c8")  # which every type holds
        np.save("a.npy", a)
        command = "-f", "--mode", "r", "--backend", "cpu", "--precision"
        expected = {}
        for precision in ("single", "double"):
            run("factor", "a.npy", "o.npy", *command, precision)
            expected[precision] = np.load("o.R.npy").tobytes()
        cases = [(dtype, chunks, storage)
                 for dtype in types for chunks in (None, (1, 40, 7), (2, 9, 3))
                 for storage in (storages if chunks else storages[:1])]
        for number, (dtype, chunks, storage) in enumerate(cases):
            stored = a if isinstance(dtype, str) else np.zeros(a.shape, dtype)
            if not isinstance(dtype, str):
                stored[dtype.names[0]], stored[dtype.names[1]] = a.real, a.imag
            with h5py.File("a.h5", "w") as file:
                file.create_dataset("A", data=stored, dtype=dtype, chunks=chunks, **storage)
            precision = ("single", "double")[number % 2]
            with self.subTest(dtype=dtype, chunks=chunks, precision=precision, **storage):
                run("factor", "a.h5", "o.npy", *command, precision)
                self.assertEqual(np.load("o.R.npy").tobytes(), expected[precision])

    def test_attributes_of_variables(self):
        """As xarray applies them, which loses imaginary parts where a scale is given."""
        for kind in ("c8", "c16"):
            a = self.draw((6, 3), kind)
            a[1, 2], a[4, 0] = -9, 5 + 6j
            for attributes, expected in (
                    ({"_FillValue": -9.0}, np.where(a == -9, np.nan, a)),
                    ({"_FillValue": np.dtype(kind).type(-9)}, np.where(a == -9, np.nan, a)),
                    ({"missing_value": 5 + 6j}, np.where(a == 5 + 6j, np.nan, a)),
                    ({"scale_factor": 2.0, "add_offset": 3.0}, 2 * a + 3),
                    ({"scale_factor": 0.1, "_FillValue": 5 + 6j},
                     0.1 * np.where(a == 5 + 6j, np.nan, a))):
                with h5py.File("a.h5", "w") as file:
                    file["A"] = a
                    file["A"].attrs.update(attributes)
                    file["b"] = np.arange(6.0)
                np.save("e.npy", expected.astype(kind))
                for precision in ("single", "double"):
                    options = "-f", "--missing", "skip", "--precision", precision
                    for name in ("a.h5:/A", "e.npy"):
                        run("solve", name, "a.h5:/b", f"{name[0]}.npz", *options)
                    np.testing.assert_allclose(
                        np.load("a.npz")["X"], np.load("e.npz")["X"],
                        rtol=1e-3 if kind == "c8" or precision == "single" else 1e-12)
                if "scale_factor" not in attributes:
                    decoded = xarray.decode_cf(
                        xarray.Dataset({"a": (("x", "y"), a, attributes)}))["a"].values
                    np.testing.assert_array_equal(decoded, expected)
                run("solve", "a.h5:/A", "a.h5:/b", "x.h5", "-f", "--missing", "skip")
                run("verify", "a.h5:/A", "a.h5:/b", "x.h5")
                self.assertIn("netcdf_", run("info", "x.h5", "-v").stdout)
                run("factor", "a.h5:/A", "q.h5", "-f", "--raw-values")
                with h5py.File("q.h5") as file:
                    np.testing.assert_allclose(file["Q"][()] @ file["R"][()], a, rtol=1e-4)
        with h5py.File("a.h5", "r+") as file:
            file["A"].attrs.update({"scale_factor": 1 + 2j})
        self.assertIn("scale_factor is not one number",
                      run("factor", "a.h5:/A", "q.h5", "-f", status=3).stderr)

    def test_selections(self):
        a = self.draw((6, 20, 30))
        with h5py.File("a.h5", "w") as file:
            file["a"] = a
        np.save("a.npy", a)
        parts = {"[1:5:2]": a[1:5:2], "[2]": a[2], "[:,3:17:5,1:30:4]": a[:, 3:17:5, 1:30:4],
                 "[0:2,:,7:12]": a[0:2, :, 7:12]}
        for part, expected in parts.items():
            for name in ("a.h5:/a", "a.npy:"):
                with self.subTest(name=name, part=part):
                    run("factor", name + part, "o.npz", "-f")
                    with np.load("o.npz") as out:
                        self.check(expected, out["Q"], out["R"])

    def test_matlab_layout(self):
        """MATLAB -v7.3 stores columns first, with its class and the names real and imag."""
        a = self.draw((7, 4))
        pairs = np.empty((4, 7), [("real", "f8"), ("imag", "f8")])
        pairs["real"], pairs["imag"] = a.T.real, a.T.imag
        with h5py.File("a.mat", "w", userblock_size=512) as file:
            file["a"] = pairs
            file["a"].attrs["MATLAB_class"] = np.bytes_("double")
        run("factor", "a.mat", "o.h5")
        run("verify", "a.mat", "o.h5")
        with h5py.File("o.h5") as file:
            self.assertEqual(file["Q"].dtype.names, ("real", "imag"))
            self.assertEqual(file["Q"].shape, (4, 7))
            q, r = ((file[name]["real"] + 1j * file[name]["imag"]).T for name in "QR")
        self.check(a, q, r)

    def test_octave_reads_and_writes(self):
        if shutil.which("octave-cli") is None:
            self.skipTest("Octave is not installed")
        octave("a = (1:6)' * [1 2i 3] + magic(6)(:,1:3) - 1i * ones(6,3);"
               "save -hdf5 a.h5 a; dlmwrite('a.csv', a); dlmwrite('a.txt', a, ' ');")
        run("factor", "a.h5", "o.h5")
        octave("load a.h5; load o.h5 Q R; assert(iscomplex(Q)); assert(Q * R, a, 1e-12);"
               "assert(Q' * Q, eye(3), 1e-14); assert(imag(diag(R)), zeros(3,1));"
               "assert(all(real(diag(R)) > 0))")
        run("factor", "a.csv", "o.csv")
        octave("q = dlmread('o.Q.csv'); r = dlmread('o.R.csv'); a = dlmread('a.csv');"
               "assert(q * r, a, 1e-12);")
        with open("o.R.csv", encoding="utf-8") as file:
            self.assertIn("i", file.read())
        run("factor", "a.txt", "t.csv")
        run("verify", "a.txt", "t.csv")

    def test_octave_reads_and_writes_text(self):
        if shutil.which("octave-cli") is None:
            self.skipTest("Octave is not installed")
        octave("a = (1:6)' * [1 2i 3] + magic(6)(:,1:3) - 1i * ones(6,3);"
               "b = single(cat(3, a, 2 * a)); y = a * [1; 2i; 3]; r = 1:3;"
               "save -text v.txt a b y r; save -zip a.gz a")
        for given, name in (("v.txt:/a", "a"), ("a.gz", "a"), ("v.txt:/b", "b")):
            run("factor", given, "o.h5", "-f")
            run("verify", given, "o.h5")
            octave(f"load v.txt a b; load o.h5 Q R; for i = 1:size({name}, 3)"
                   f" assert(double({name}(:,:,i)), Q(:,:,i) * R(:,:,i), 1e-5); end;"
                   " assert(iscomplex(Q))")
        run("solve", "v.txt:/a", "v.txt:/y", "o.csv")
        octave("load v.txt a y; assert(dlmread('o.X.csv'), [1; 2i; 3], 1e-12)")
        # A range has no list of numbers: as CSV it was read as base, limit and increment.
        self.assertIn("/r is a double_range", said("factor", "v.txt:/r", "r.h5", status=3))

    def test_other_compounds_are_refused(self):
        pairs = np.zeros((3, 3), [("x", "f8"), ("y", "f8")])
        with h5py.File("a.h5", "w") as file:
            file["a"] = pairs
        self.assertIn("a compound (x, y)", said("factor", "a.h5", "o.h5", status=3))

    # ---- Matrix Market

    def test_matrix_market(self):
        a = self.draw((5, 3))
        with open("a.mtx", "w", encoding="ascii") as file:
            file.write("%%MatrixMarket matrix array complex general\n5 3\n")
            file.writelines(f"{x.real!r} {x.imag!r}\n" for x in a.T.ravel())
        run("factor", "a.mtx", "o.npz")
        with np.load("o.npz") as out:
            self.check(a, out["Q"], out["R"])
        run("factor", "a.mtx", "o.mtx")
        run("verify", "a.mtx", "o.mtx")
        with open("o.R.mtx", encoding="ascii") as file:
            self.assertEqual(file.readline(), "%%MatrixMarket matrix array complex general\n")

    def test_hermitian(self):
        x = self.draw((4, 4))
        a = x + x.conj().T
        with open("a.mtx", "w", encoding="ascii") as file:
            file.write("%%MatrixMarket matrix array complex hermitian\n4 4\n")
            file.writelines(f"{a[i, j].real!r} {a[i, j].imag!r}\n"
                            for j in range(4) for i in range(j, 4))
        run("factor", "a.mtx", "o.npz")
        with np.load("o.npz") as out:
            self.check(a, out["Q"], out["R"])
        for text, what in (("2 1\n1\n2\n", "1 numbers where"), ("1 1\n1 2 3\n", "3 numbers where"),
                           ("1 1\n1 z\n", "'z' is not a number")):
            with open("b.mtx", "w", encoding="ascii") as file:
                file.write("%%MatrixMarket matrix array complex general\n" + text)
            self.assertIn(what, said("factor", "b.mtx", "o.npz", "-f", status=3))

    def test_scipy_reads_and_writes(self):
        try:
            from scipy import io
        except ImportError:
            self.skipTest("SciPy is not installed")
        a, x = self.draw((6, 4)), self.draw((4, 4))
        for name, matrix in (("a.mtx", a), ("h.mtx", x + x.conj().T), ("s.mtx", x + x.T)):
            io.mmwrite(name, matrix)
            run("factor", name, "o.mtx", "-f")
            self.check(matrix, io.mmread("o.Q.mtx"), io.mmread("o.R.mtx"))

    # ---- CSV

    def test_text_of_python_numpy_and_octave(self):
        a = np.array([[1 + 2j, 3 - 4j], [-5e-3 + 6j, 7 + 0j], [2j, -1.5 - 2.5e2j]])
        texts = {"python": "1+2j,3-4j\n-0.005+6j,7+0j\n2j,-1.5-250j\n",
                 "parentheses": "(1+2j),(3-4j)\n(-0.005+6j),(7+0j)\n2j,(-1.5-250j)\n",
                 "signs": "1+2j,3+-4j\n-5e-3+6j,7\n0+2j,-1.5+-2.5e2j\n",
                 "octave": "1+2i,3-4i\n-0.005+6i,7\n0+2i,-1.5-2.5e+02i\n",
                 "blanks": "1 + 2i; 3 - 4i\n-0.005 + 6i; 7\n2i; -1.5 - 250i\n",
                 "quoted": '"1+2j","3-4j"\n"-0.005+6j","7"\n"2j","-1.5-250j"\n',
                 "header": "first,second\n1+2j,3-4j\n-0.005+6j,7\n2j,-1.5-250j\n",
                 "pandas": ",0,1\n0,(1+2j),(3-4j)\n1,(-0.005+6j),7\n2,2j,(-1.5-250j)\n"}
        for name, text in texts.items():
            with self.subTest(name):
                with open("a.csv", "w", encoding="utf-8") as file:
                    file.write(text)
                run("factor", "a.csv", "o.npz", "-f")
                with np.load("o.npz") as out:
                    self.check(a, out["Q"], out["R"])
                run("factor", "a.csv", "o.csv", "-f")
                run("verify", "a.csv", "o.csv")

    def test_numpy_savetxt_and_loadtxt(self):
        a = self.draw((6, 3))
        np.savetxt("a.txt", a)
        np.savetxt("a.csv", a, delimiter=",")
        for name in ("a.txt", "a.csv"):
            run("factor", name, "o" + name[1:], "-f")
            run("verify", name, "o" + name[1:])
            delimiter = "," if name.endswith("csv") else None
            q, r = (np.loadtxt(f"o.{factor}{name[1:]}", complex, delimiter=delimiter)
                    for factor in "QR")
            self.check(np.loadtxt(name, complex, delimiter=delimiter), q, r)
        with open("o.R.csv", encoding="utf-8") as file:
            self.assertIn("(", file.read())
        np.save("s.npy", a.astype("c8"))
        run("factor", "s.npy", "s.csv")
        q, r = (np.loadtxt(f"s.{factor}.csv", complex, delimiter=",").astype("c8")
                for factor in "QR")
        self.check(a.astype("c8"), q, r)
        run("verify", "s.npy", "s.csv")

    def test_text_with_two_signs_is_no_number(self):
        for word in ("1++2j", "1--2j"):
            with open("a.csv", "w", encoding="utf-8") as file:
                file.write(f"1+2j,2\n{word},4+1j\n")
            self.assertIn(f"'{word}' is not a number",
                          said("factor", "a.csv", "o.h5", "-f", status=3))

    def test_text_that_is_not_finite(self):
        for word in ("nan+1j", "1+nanj", "inf-2j", "(1-infj)", "NaN + NaNi", "-Inf-Infi"):
            with self.subTest(word):
                with open("a.csv", "w", encoding="utf-8") as file:
                    file.write(f"1+2j,2\n{word},4+1j\n")
                self.assertIn("1 not finite", said("factor", "a.csv", "o.h5", "-f", status=1))

    # ---- the program around it

    def test_info_dry_run_and_reports(self):
        a = self.draw((20, 9, 4), "c8")
        with h5py.File("a.h5", "w") as file:
            file["a"] = a
        found = json_of("info", "a.h5")
        self.assertEqual(found["factor_reads"]["factored_in"], "complex64")
        self.assertIn("complex64", said("info", "a.h5"))
        planned = json_of("factor", "a.h5", "o.h5", "--dry-run")
        self.assertEqual(planned["runs"][0]["input_bytes"], 20 * 9 * 4 * 8)
        self.assertGreater(planned["output_bytes"], 20 * (9 * 4 + 16) * 8)
        out = json_of("factor", "a.h5", "o.h5")
        self.assertEqual(out["backend"]["variant"], "cpu/complex")
        self.assertEqual(out["check"]["matrices"], 20)
        checked = json_of("verify", "a.h5", "o.h5", "--all")
        self.assertEqual(checked["input"]["type"], "complex64")
        self.assertEqual(checked["unit_roundoff"], 2.0**-23)
        with h5py.File("o.h5") as file:
            errors = [each["residual"]["error"] for each in checked["all_matrices"]]
            np.testing.assert_allclose(errors, file["report/residual"][()], rtol=1e-6)

    def test_verify_finds_what_is_wrong(self):
        a = self.draw((8, 5))
        q, r = np.linalg.qr(a)
        np.save("a.npy", a)
        np.savez("good.npz", Q=q, R=r)
        run("verify", "a.npy", "good.npz")
        turn = np.exp(1j * np.arange(5))  # R's diagonal need not be real
        np.savez("turned.npz", Q=q * turn, R=r / turn[:, None])
        run("verify", "a.npy", "turned.npz")
        for name, wrong in (("conjugated", (q.conj(), r)), ("scaled", (q * 1.0001, r)),
                            ("not upper", (q, r + 1e-3 * np.eye(5)[::-1] * 1j))):
            np.savez("wrong.npz", Q=wrong[0], R=wrong[1])
            self.assertIn("0 of 1 pass", said("verify", "a.npy", "wrong.npz", status=1), name)
        np.savez("mixed.npz", Q=q.real, R=r)
        self.assertIn("A is complex128, and Q is float64",
                      said("verify", "a.npy", "mixed.npz", status=3))
        np.savez("real.npz", Q=q.real, R=r.real)
        self.assertIn("A is complex128, and Q is float64",
                      said("verify", "a.npy", "real.npz", status=3))

    def test_several_datasets_and_folders(self):
        with h5py.File("a.h5", "w") as file:
            file["x"], file["y"] = self.draw((6, 4)), self.random.standard_normal((3, 5, 2))
        run("factor", "a.h5", "o.h5", "--dataset", "x", "--dataset", "y")
        run("verify", "a.h5", "o.h5")
        with h5py.File("o.h5") as file:
            self.assertEqual((file["Q/x"].dtype, file["Q/y"].dtype), ("c16", "f8"))
        np.save("a.npy", self.draw((6, 4), "c8"))
        run("factor", "a.npy", "a.h5:/x", "--into", "out")
        self.assertEqual(np.load("out/a.R.npy").dtype, "c8")

    def test_what_takes_no_complex_matrices_says_so(self):
        np.save("a.npy", self.draw((6, 3)))
        np.save("b.npy", np.arange(12.0).reshape(6, 2)**2)
        cases = {("factor", "a.npy", "o.h5", "--precision", "mixed"): 2,
                 ("factor", "a.npy", "o.h5", "--variant", "cpu/blocked"): 2,
                 ("solve", "a.npy", "b.npy", "x.csv", "--groups", "b.npy"): 2,
                 ("solve", "b.npy", "b.npy", "x.h5", "--rows", "matrix", "--weights", "a.npy"): 3,
                 ("solve", "a.npy", "b.npy", "x.h5", "--variant", "cpu/blocked"): 2}
        for command, status in cases.items():
            with self.subTest(command):
                text = said(*command, status=status)
                self.assertIn("complex", text)
        self.assertEqual(sorted(os.listdir()), ["a.npy", "b.npy"])

    def test_generate(self):
        for kind in ("gauss", "haar", "cond", "kahan", "graded-columns", "rank-deficient", "zero"):
            with self.subTest(kind):
                run("generate", "--kind", kind, "--complex", "--shape", "4x6x5", "g.npy", "-f",
                    "--precision", "double")
                a = np.load("g.npy")
                self.assertEqual((a.dtype, a.shape), ("c16", (4, 6, 5)))
                run("factor", "g.npy", "o.npz", "-f")
                if kind == "haar":
                    np.testing.assert_allclose(np.swapaxes(a.conj(), 1, 2) @ a, [np.eye(5)] * 4,
                                               atol=1e-14)
                if kind == "cond":
                    s = np.linalg.svd(a, compute_uv=False)
                    np.testing.assert_allclose(s[:, 0] / s[:, -1], 1e6, rtol=1e-6)
                if kind != "zero":
                    self.assertGreater(abs(a.imag).max(), 0)
        run("generate", "--kind", "haar", "--complex", "--special", "--shape", "3x3", "g.npy", "-f",
            status=2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
