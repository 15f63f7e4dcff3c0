#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a NumPy user sees: every array that numpy.save writes is read, numpy.load reads what the
tool writes, and files that lie are refused with a message."""
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import unittest
import zipfile

import h5py
import numpy as np

from tool import QRTOOL, FolderTest

REALS = [order + kind for kind in ("f2", "f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8")
         for order in "<>"]
REALS += ["|i1", "|u1", "|b1"]


def qrtool(*args, status=0, **environment):
    done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, **environment})
    assert done.returncode == status, (args, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def header(text, version=1, length=None):
    data = text.encode("latin-1")
    size = struct.pack("<H" if version == 1 else "<I", len(data) if length is None else length)
    return b"\x93NUMPY" + bytes([version, 0]) + size + data


def dictionary(shape="(2, 3)", descr="'<f8'", order="False"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


class NumPyFiles(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(7)

    def numbers(self, shape, kind="f8"):
        if kind[-2] in "fc":
            return self.random.standard_normal(shape).astype(kind)
        return self.random.integers(0, 2 if kind[-2] == "b" else 100, shape).astype(kind)

    def test_archives_that_numpy_refuses(self):
        np.savez("good.npz", a=self.numbers((3, 2)))
        np.savez("empty.npz", a=np.zeros((0, 3)))
        with open("good.npz", "rb") as file:
            good = file.read()
        with open("empty.npz", "rb") as file:
            empty = file.read()
        directory, end = good.index(b"PK\1\2"), good.index(b"PK\5\6")

        def changed(data, *changes):
            data = bytearray(data)
            for at, new in changes:
                data[at:at + len(new)] = new
            return bytes(data)

        def flagged(bit):
            return changed(good, (6, struct.pack("<H", good[6] | bit)),
                           (directory + 8, struct.pack("<H", good[directory + 8] | bit)))

        before = b"PK\3\4 and more"
        moved = struct.pack("<I", len(before)), struct.pack("<I", directory + len(before))
        cases = {
            "empty, another checksum": changed(
                empty, (14, b"abcd"), (empty.index(b"PK\1\2") + 16, b"abcd")),
            "empty, another byte": changed(empty, (empty.index(b"NUMPY") + 90, b"x")),
            "a NUL": good.replace(b"a.npy", b"a\0npy"),
            "a patch": flagged(1 << 5),
            "strong encryption": flagged(1 << 6),
            "bytes before": before + changed(good, (directory + 42, moved[0]),
                                             (end + 16, moved[1])),
            "two names": good.replace(b"a.npy", b"b.npy", 1),
        }
        for name, data in cases.items():
            with self.subTest(name):
                with open("c.npz", "wb") as file:
                    file.write(data)
                if name not in ("bytes before", "a NUL"):
                    with self.assertRaises(Exception):
                        with np.load("c.npz") as file:
                            np.asarray([file[key] for key in ("a", "b") if key in file][0])
                said = qrtool("factor", "c.npz", "q.h5", status=3)
                self.assertIn("damaged", said)
        for data in (good, empty):
            with open("c.npz", "wb") as file:
                file.write(data)
            qrtool("factor", "c.npz", "q.h5", "--force")

    def test_a_scratch_directory_that_takes_nothing_is_named(self):
        np.savez_compressed("a.npz", a=self.numbers((500, 4, 3)))
        with open("a.mtx", "w", encoding="ascii") as file:
            file.write("%%MatrixMarket matrix array real general\n2 1\n1\n2\n")
        for name in ("a.npz", "a.mtx"):
            said = qrtool("factor", name, "q.h5", status=5, TMPDIR="/proc")
            self.assertIn("'/proc': ", said)
            self.assertNotIn("--scratch '", said)
            self.assertIn("TMPDIR to a directory with", said)

    def write_bytes(self, name, data):
        with open(name, "wb") as file:
            file.write(data)

    def check(self, a, q, r):
        self.assertEqual(q.shape[:-2], a.shape[:-2])
        single = q.dtype == np.float32
        self.assertEqual(single, a.dtype.kind == "f" and a.dtype.itemsize <= 4)
        a = a.astype("f8")
        np.testing.assert_allclose(q.astype("f8") @ r.astype("f8"), a,
                                   atol=(1e-5 if single else 1e-13) * max(np.abs(a).max(), 1))

    def test_every_type_order_rank_and_version(self):
        for number, kind in enumerate(REALS):
            for shape in ((7, 4), (5, 7, 4), (2, 3, 4, 6), (1, 3, 1)):
                for order in "CF":
                    a = np.asarray(self.numbers(shape, kind), order=order)
                    with open("a.npy", "wb") as file:
                        np.lib.format.write_array(file, a, version=(1 + number % 3, 0))
                    qrtool("factor", "a.npy", "q.npy", "-qf")
                    self.check(a, np.load("q.Q.npy"), np.load("q.R.npy"))

    def test_every_half_is_exact(self):
        a = np.arange(65536, dtype="u2").view("f2")
        a = a[np.isfinite(a)].reshape(-1, 1, 1)
        np.save("a.npy", a)
        qrtool("factor", "a.npy", "q.npz", "-q")
        with np.load("q.npz") as z:
            np.testing.assert_array_equal(z["Q"] * z["R"], a.astype("f4"))

    def test_every_mode_and_way_out(self):
        a = self.numbers((3, 6, 4))
        np.save("a.npy", np.asfortranarray(a))
        names = {"reduced": ("Q", "R"), "complete": ("Q", "R"), "r": ("R",), "raw": ("V", "tau")}
        for mode, factors in names.items():
            for out in ("o.npy", "o.npz", "o.h5"):
                qrtool("factor", "a.npy", out, "-qf", "--mode", mode)
                self.assertIn(" pass\n", qrtool("verify", "a.npy", out))
            with np.load("o.npz", allow_pickle=False) as z:
                record = json.loads(str(z["qrtool"]))
                self.assertEqual((record["format"], record["mode"], record["source_file"]),
                                 ("qrtool", mode, "a.npy"))
                self.assertEqual([z["report_" + c].dtype.str
                                  for c in ("residual", "status", "scale", "tries")],
                                 ["<f8", "|u1", "<i4", "|u1"])
                self.assertEqual(z["report_residual"].shape, (3,))
                with h5py.File("o.h5") as file:
                    for name in factors:
                        np.testing.assert_array_equal(np.load(f"o.{name}.npy"), file[name][:])
                        np.testing.assert_array_equal(z[name], file[name][:])
            with open("o.report.json", encoding="utf-8") as file:
                report = json.load(file)
            self.assertEqual(report["qrtool"]["mode"], mode)
            self.assertEqual([line["matrix"] for line in report["matrices"]], [0, 1, 2])
            left = {f for f in os.listdir() if f.startswith("o.") and f.endswith(".npy")}
            self.assertEqual(left, {f"o.{name}.npy" for name in factors})

    def test_wide_matrices_and_matrices_without_rows_end(self):
        """R of 1 x n has n entries, and work or memory of n x n entries would not end."""
        for shape, mode in (((65536, 0, 65536), "reduced"), ((65536, 0, 65536), "r"),
                            ((1, 1 << 20), "r"), ((2, 1 << 19), "r")):
            np.save("a.npy", np.ones(shape))
            for command in (("factor", "a.npy", "q.h5", "-f", "--mode", mode),
                            ("verify", "a.npy", "q.h5")):
                done = subprocess.run([QRTOOL, *command, "--memory", "200MiB"], timeout=60,
                                      check=False, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_rows_and_columns_without_entries_take_no_time(self):
        """A header alone can say that there are 2^59 rows."""
        def claim(name, shape, kind):
            with open(name, "wb") as file:
                np.lib.format.write_array_header_1_0(
                    file, {"descr": np.dtype(kind).str, "fortran_order": False, "shape": shape})

        def expect(statuses, *command):
            done = subprocess.run([QRTOOL, *command], timeout=60, check=False,
                                  capture_output=True, text=True)
            self.assertIn(done.returncode, statuses, (command, done.stderr))

        for kind, rows in (("f4", 2**59), ("f8", 2**59), ("c8", 2**58), ("c16", 2**58)):
            for shape in ((rows, 0), (0, 2**40), (3, rows // 16, 0)):
                claim("a.npy", shape, kind)
                for mode in ("reduced", "r", "raw"):
                    expect([0], "factor", "a.npy", "q.h5", "-f", "--mode", mode)
                    expect([0], "verify", "a.npy", "q.h5")
                # By rows, as of what does not fit into memory.
                expect([0], "factor", "a.npy", "q.h5", "-f", "--mode", "r", "--memory", "1MiB")
            claim("a.npy", (rows, 0), kind)
            expect([0], "factor", "a.npy", "q.h5", "-f", "--pivot")
            # There are no numbers, but memory for a right side or for x may be counted.
            expect([0, 6], "solve", "a.npy", "a.npy", "x.h5", "-f")
            claim("a.npy", (0, 2**40), kind)
            claim("b.npy", (0,), kind)
            expect([6], "solve", "a.npy", "b.npy", "x.h5", "-f")

    def test_formats_cross(self):
        a = self.numbers((4, 5, 3), "f4")
        np.save("a.npy", a)
        np.savez("s.npz", x=a, v=a[0, 0])
        np.savez_compressed("d.npz", a=a, b=a + 1)
        with h5py.File("a.h5", "w") as file:
            file["a"] = a
        with open("a.csv", "w", encoding="utf-8") as file:
            file.write("\n\n".join("\n".join(",".join(map(repr, map(float, row))) for row in m)
                                   for m in a))
        sources = ("a.npy", "s.npz", "d.npz:a", "d.npz:a.npy", "a.h5", "a.csv")
        for source in sources:
            for out in ("o.npy", "o.npz", "o.h5", "o.csv"):
                qrtool("factor", source, out, "-qf")
                for other in sources:
                    self.assertIn(" pass\n", qrtool("verify", other, out))
        self.assertIn("choose one, as in d.npz:a", qrtool("factor", "d.npz", "x.h5", status=3))
        self.assertIn("there is no member c", qrtool("factor", "d.npz:c", "x.h5", status=3))
        np.savez("t.npz", t="text")
        self.assertIn("holds strings", qrtool("factor", "t.npz", "x.h5", status=3))
        # The recorded member is found again.
        qrtool("factor", "d.npz:b", "o.npz", "-qf")
        self.assertIn(" pass\n", qrtool("verify", "d.npz", "o.npz"))

    def test_a_factor_that_is_missing_is_named(self):
        np.save("a.npy", self.numbers((3, 6, 4)))
        qrtool("factor", "a.npy", "o.npy", "-q")
        qrtool("factor", "a.npy", "o.npz", "-q")
        os.remove("o.Q.npy")
        with np.load("o.npz") as z:
            np.savez("o.npz", **{name: z[name] for name in z.files if name != "Q"})
        for out in ("o.npy", "o.npz"):
            self.assertIn(f"{out}: was written with mode reduced, but holds no Q",
                          qrtool("verify", "a.npy", out, status=3))

    def test_a_column_ordered_source_gives_what_numpy_shows(self):
        a = self.numbers((3, 6, 4))
        with h5py.File("m.h5", "w") as file:
            file["a"] = np.swapaxes(a, 1, 2)
        for out in ("o.npy", "o.npz"):
            qrtool("factor", "m.h5", out, "-q", "--order", "column")
            self.assertIn(" pass\n", qrtool("verify", "m.h5", out))
        self.check(a, np.load("o.Q.npy"), np.load("o.R.npy"))
        np.save("a.npy", a)
        self.assertIn("--order column is for HDF5",
                      qrtool("factor", "a.npy", "x.h5", "--order", "column", status=2))

    def test_by_rows(self):
        a = self.numbers((60000, 16))
        np.save("c.npy", a)
        np.save("f.npy", np.asfortranarray(a.astype(">f4")))
        np.savez("s.npz", a=a)
        for source in ("c.npy", "f.npy", "s.npz"):
            for out in ("q.npy", "q.npz"):
                said = qrtool("factor", source, out, "-vf", "--memory", "9MiB", "--backend", "cpu")
                self.assertIn("passes", said)
                self.assertIn("the matrix passes",
                              qrtool("verify", source, out, "--memory", "10MiB"))
            self.check(a if source != "f.npy" else a.astype("f4"), np.load("q.Q.npy"),
                       np.load("q.R.npy"))

    def test_empty_arrays(self):
        for shape in ((0, 3), (3, 0), (0, 4, 3), (2, 0, 3), (0, 0)):
            np.save("a.npy", np.zeros(shape))
            for out in ("q.npy", "q.npz"):
                qrtool("factor", "a.npy", out, "-qf")
            k = min(shape[-2:])
            self.assertEqual(np.load("q.Q.npy").shape, shape[:-1] + (k,))
            with np.load("q.npz") as z:
                self.assertEqual(z["R"].shape, shape[:-2] + (k, shape[-1]))

    def test_files_of_two_runs_are_noticed(self):
        for name in "ab":
            np.save(f"{name}.npy", self.numbers((3, 5, 2)))
            qrtool("factor", f"{name}.npy", f"{name}q.npy", "-q")
        shutil.copy("bq.R.npy", "aq.R.npy")
        self.assertIn("is not the one that aq.report.json describes",
                      qrtool("verify", "a.npy", "aq.npy", status=3))
        os.remove("aq.report.json")
        self.assertIn("0 of 3 pass", qrtool("verify", "a.npy", "aq.npy", status=1))
        q = np.load("bq.Q.npy")
        np.save("bq.Q.npy", np.asfortranarray(q))  # the same numbers
        self.assertIn(" pass\n", qrtool("verify", "b.npy", "bq.npy"))
        q[1, 0, 0] = np.nextafter(q[1, 0, 0], 2)
        np.save("bq.Q.npy", q)
        self.assertIn("matrix 1 of bq.Q.npy, bq.R.npy",
                      qrtool("verify", "b.npy", "bq.npy", status=3))
        self.assertIn("name all of them together: bq.npy",
                      qrtool("verify", "b.npy", "bq.Q.npy", status=3))

    def test_the_way_of_the_matrices_is_recorded(self):
        a = self.numbers((3, 3000, 4)).astype("f4")
        a[1, :, 3] = a[1, :, 0]
        a[2, 7, 1] = np.nan
        np.save("a.npy", a)
        np.save("one.npy", a[1])
        np.save("usual.npy", a[0])
        with h5py.File("several.h5", "w") as file:
            file["bad"], file["good"] = a, a[:1]

        def attributes(out):
            if out.endswith(".h5"):
                with h5py.File(out) as file:
                    return dict(file.attrs)
            if out.endswith(".npz"):
                with np.load(out) as file:
                    return json.loads(str(file["qrtool"]))
            with open("q.report.json", encoding="utf-8") as file:
                return json.load(file)["qrtool"]

        usual = ("-f", "--mode", "r", "--variant", "cpu/tall")
        for out in ("q.h5", "q.npz", "q.npy", "q.mtx"):
            qrtool("factor", "one.npy", out, "-q", *usual)
            one = attributes(out)
            self.assertEqual((one["variant"], one["way"]), ("cpu/tall", "all 1 by reflectors"))
            qrtool("verify", "one.npy", out, "-q")
            qrtool("factor", "usual.npy", out, "-q", *usual)
            self.assertNotIn("way", attributes(out))
            if out != "q.mtx":
                qrtool("factor", "a.npy", out, "-q", *usual, status=1)
                self.assertEqual(attributes(out)["way"], "1 of 2 by reflectors")
                self.assertIn("1 of 2 by reflectors", qrtool("info", out))
        qrtool("factor", "several.h5", "q.h5", "-q", "--dataset", "bad", "--dataset", "good",
               *usual, status=1)
        with h5py.File("q.h5") as file:
            self.assertEqual(file["report/bad"].attrs["way"], "1 of 2 by reflectors")
            self.assertNotIn("way", file["report/good"].attrs)

    def test_types_that_are_no_numbers(self):
        cases = {"G": "long double", "O": "Python objects", "U3": "strings", "S2": "strings",
                 "M8[s]": "dates",
                 "m8[s]": "dates", "V4": "raw bytes", "g": "long double"}
        for kind, word in cases.items():
            np.save("a.npy", np.zeros((2, 3), kind), allow_pickle=True)
            said = qrtool("factor", "a.npy", "q.h5", status=3)
            self.assertIn(word, said)
            self.assertIn("hint: ", said)
        np.save("a.npy", np.zeros((2, 3), [("x", "f4"), ("y", "i4", (2,))]))
        self.assertIn("is structured (fields x, y)", qrtool("factor", "a.npy", "q.h5", status=3))
        for shape in ((), (5,)):
            np.save("a.npy", np.zeros(shape))
            self.assertIn("matrix", qrtool("factor", "a.npy", "q.h5", status=3))
        np.save("a.npy", np.full((2, 2), 1e300))
        self.assertIn("use --precision double",
                      qrtool("factor", "a.npy", "q.h5", "--precision", "single", status=3))
        self.assertEqual(os.listdir(), ["a.npy"])

    def test_headers_that_lie(self):
        good = dictionary()
        numbers = np.arange(6.0).tobytes()
        self.write_bytes("a.npy", header(good) + numbers)
        qrtool("factor", "a.npy", "q.h5", "-q")
        long = "(" + "1, " * 33 + ")"
        cases = [
            (header(good) + numbers[:-1], "truncated"),
            (header(good), "truncated"),
            (header(good)[:9], "truncated"),
            (header(good)[:30], "truncated"),
            (header(good) + numbers + b"x", "1 bytes after the array"),
            (header(good, version=9) + numbers, "version 9.0"),
            (header(good, length=60000) + numbers, "damaged header"),
            (header(good, version=2, length=2**32 - 1) + numbers, "damaged header"),
            (header(dictionary("(-2, 3)")) + numbers, "a negative size"),
            (header(dictionary("(4294967296, 4294967296)")) + numbers,
             "more than can be addressed"),
            (header(dictionary("(0, 9223372036854775807)")) + numbers,
             "more than can be addressed"),
            (header(dictionary("(99999999999999999999, 1)")) + numbers, "too large"),
            (header(dictionary(long)) + numbers, "more than 32 dimensions"),
            (header(dictionary("(1000000000, 1000000000)")) + numbers, "truncated"),
            (header(dictionary("(6)")) + numbers, "no tuple"),
            (header(dictionary("(2, 3")) + numbers, "damaged header"),
            (header(dictionary("(02, 3)")) + numbers, "damaged header"),
            (header(dictionary("(2.0, 3)")) + numbers, "damaged header"),
            (header(dictionary(descr="'<f3'")) + numbers, "unknown type"),
            (header(dictionary(descr="'<i0'")) + numbers, "unknown type"),
            (header(dictionary(order="1")) + numbers, "neither True nor False"),
            (header(good.replace("shape", "shapes")) + numbers, "unknown or repeated"),
            (header(good.replace("}", "'shape': (3, 2)}")) + numbers, "unknown or repeated"),
            (header(good.replace("'shape': (2, 3), ", "")) + numbers, "no 'shape'"),
            (header(good + "__import__('os')") + numbers, "text after"),
            (header("[" * 9000) + numbers, "no dictionary"),
            (header(dictionary(descr="[" * 9000)) + numbers, "no end"),
            (b"\x93NUMPZ" + header(good)[6:] + numbers, "not a .npy array"),
        ]
        for data, message in cases:
            self.write_bytes("a.npy", data)
            said = qrtool("factor", "a.npy", "x.h5", status=3)
            self.assertTrue(said.startswith("qrtool: a.npy: "), said)
            self.assertIn(message, said)
        # Python 2 wrote sizes as 2L.
        self.write_bytes("a.npy", header(dictionary("(2L, 3L)")) + numbers)
        qrtool("factor", "a.npy", "x.h5", "-q")

    def zip_of(self, data, name="a.npy", method=zipfile.ZIP_DEFLATED, change=None):
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", method) as archive:
            archive.writestr(name, data)
        data = bytearray(target.getvalue())
        if change:
            change(data)
        self.write_bytes("a.npz", bytes(data))

    def test_spreadsheets_are_named(self):
        for name in ("[Content_Types].xml", "META-INF/manifest.xml"):
            self.zip_of(b"<x/>", name)
            for file in ("a.npz", "a.xlsx"):
                os.rename("a.npz", file)
                said = qrtool("factor", file, "x.h5", status=3)
                self.assertEqual(said, f"qrtool: {file}: a spreadsheet or document; it cannot be "
                                       "read\nhint: save the sheet as CSV\n")
                os.rename(file, "a.npz")

    def test_archives_that_lie(self):
        array = io.BytesIO()
        np.save(array, self.numbers((2, 3)))
        array = array.getvalue()
        huge = header(dictionary("(20000, 20000)")) + b"\0" * 64

        def encrypt(data):
            central = data.rindex(b"PK\x01\x02")
            data[6] |= 1
            data[central + 8] |= 1

        def flip(data):
            data[data.index(b"NUMPY") + 130] ^= 1  # a number

        cases = [
            (dict(data=array, change=encrypt), "encrypted"),
            (dict(data=array, method=zipfile.ZIP_BZIP2), "compressed with bzip2"),
            (dict(data=array, method=zipfile.ZIP_STORED, change=flip), "damaged zip archive"),
            (dict(data=huge), "truncated"),
            (dict(data=array + b"x"), "1 bytes after the array"),
            (dict(data=b"text"), "not a .npy array"),
            (dict(data=array, change=lambda data: data.__delitem__(slice(-30, None))), "a.npz: "),
        ]
        for case, message in cases:
            self.zip_of(**case)
            said = qrtool("factor", "a.npz", "x.h5", status=3)
            self.assertTrue(said.startswith("qrtool: a.npz: "), said)
            self.assertIn(message, said)
        with zipfile.ZipFile("a.npz", "w") as archive:
            archive.writestr("a.npy", array)
            archive.writestr("a", array)
        self.assertIn("two members are named a", qrtool("factor", "a.npz", "x.h5", status=3))
        with zipfile.ZipFile("a.npz", "w"):
            pass
        self.assertIn("holds no member", qrtool("factor", "a.npz", "x.h5", status=3))

    def test_a_bomb_is_refused_before_it_is_unpacked(self):
        count = 1 << 28  # 2 GiB, in some hundred bytes

        def claim(data):
            size = len(header(dictionary(f"({count}, 1)"))) + 8 * count
            struct.pack_into("<I", data, 22, size)
            struct.pack_into("<I", data, data.rindex(b"PK\x01\x02") + 24, size)

        self.zip_of(header(dictionary(f"({count}, 1)")) + bytes(64), change=claim)
        said = qrtool("factor", "a.npz", "x.h5", "--mode", "r", status=6)
        self.assertIn("a.npz: a: the member claims 2.0 GiB, packed into ", said)
        # A lie that deflate could keep ends with the first bytes that are missing.
        count = 1 << 16
        self.zip_of(header(dictionary(f"({count}, 1)")) + bytes(64), change=claim)
        self.assertIn("damaged zip archive", qrtool("factor", "a.npz", "x.h5", status=3))
        self.assertEqual(os.listdir(), ["a.npz"])

    def test_scratch_that_cannot_be_had(self):
        np.savez_compressed("a.npz", a=self.numbers((20, 4)))
        said = qrtool("factor", "a.npz", "x.h5", status=5, TMPDIR="/proc")
        self.assertIn("its numbers must be copied before they are read", said)
        self.assertIn("hint: give --scratch DIR or set TMPDIR", said)
        qrtool("factor", "a.npz", "x.h5", "-q", "--scratch", os.getcwd(), TMPDIR="/proc")

    def test_names_of_outputs(self):
        np.save("a.npy", self.numbers((4, 3)))
        self.assertIn("same file", qrtool("factor", "a.npy", "a.npy", "--force", status=2))
        self.assertIn("fixed names", qrtool("factor", "a.npy", "o.npz:Q", status=2))
        self.assertIn("no datasets", qrtool("factor", "a.npy:/x", "o.h5", status=2))
        qrtool("factor", "a.npy", "o.npy", "-q", "--report", "r.csv")
        self.assertIn("'o.Q.npy' exists", qrtool("factor", "a.npy", "o.npy", status=5))
        self.assertIn("would be a file of the factors",
                      qrtool("factor", "a.npy", "p.npy", "--report", "p.report.json", status=2))
        qrtool("generate", "--shape", "3x4x2", "g.npy", "-q")
        qrtool("generate", "--shape", "3x4x2", "g.npz", "-q")
        with np.load("g.npz") as z:
            np.testing.assert_array_equal(z["A"], np.load("g.npy"))
        qrtool("factor", "a.npy", "one.npz", "-q")
        qrtool("factor", "a.npy", "two.npz", "-q")
        with open("one.npz", "rb") as one, open("two.npz", "rb") as two:
            self.assertEqual(one.read(), two.read(), "equal runs give equal bytes")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
