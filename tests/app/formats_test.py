#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of pandas, R, Octave, MATLAB, Julia, Excel, SciPy and netCDF are read as those programs
mean them: the files in tests/data, and, where a program is installed, files that it writes now."""
import gzip
import os
import shutil
import subprocess
import sys
import unittest

import h5py
import numpy as np

from tool import QRTOOL, FolderTest

ROOT = sys.argv[2]
DATA = os.path.join(ROOT, "tests/data")
A = np.array([[1.5, -2.25, 3], [4, 5.125, -6], [7.5, 8, 9.75], [-10, 11.5, 12], [13, 14, -15.5]])
R_MATRIX = "a <- rbind({})".format(", ".join(f"c({','.join(map(str, row))})" for row in A.tolist()))
OCTAVE_MATRIX = "a = [{}];".format("; ".join(" ".join(map(str, row)) for row in A.tolist()))
INDEX = "the first column is left out as an index"


def qrtool(*args, status=0, stdin=None):
    done = subprocess.run([QRTOOL, *args], capture_output=True, timeout=120, check=False,
                          input=stdin)
    text = (done.stdout + done.stderr).decode()
    assert done.returncode == status, (args, done.returncode, text)
    return text


def lines_of(name):
    with open(name, encoding="utf-8") as file:
        return file.readlines()


class Formats(FolderTest):
    def check(self, path, *options, expected=A, note=None):
        """The product of the factors is the matrix; verify finds out by itself how IN was read."""
        said = qrtool("factor", path, "q.h5", "--force", *options)
        with h5py.File("q.h5") as file:
            q, r = file["Q"][:], file["R"][:]
            # As MATLAB, Octave, Julia and R show them.
            if str(np.asarray(file.attrs["order"]).astype(str)) == "column":
                q, r = np.swapaxes(q, -1, -2), np.swapaxes(r, -1, -2)
            np.testing.assert_allclose(q @ r, expected, rtol=0, atol=1e-13)
        self.assertEqual("note:" in said, note is not None, said)
        if note:
            self.assertIn(note, said)
        qrtool("verify", path, "q.h5")

    def test_kept_files(self):
        column = ("julia.h5", "matlab.h5")  # rhdf5 leaves a mark
        notes = {"julia.h5": None, "matlab.h5": None, "matlab.mat": None, "octave.h5": None,
                 "pandas.h5": None,
                 "pytables.h5": None, "rhdf5.h5": None, "pandas.csv": INDEX,
                 "pandas_names.csv.gz": INDEX, "pandas_de.csv": INDEX, "r.csv": INDEX,
                 "r2.csv": INDEX, "r.txt": INDEX, "pandas_plain.csv": "is taken for the names",
                 "octave.txt": None,
                 "excel.csv": "line 7 holds no number", "scipy.mtx": None}
        others = {"README.md", "format-1.0.h5", "format-1.0-input.h5"}
        self.assertEqual(set(os.listdir(DATA)) - others, set(notes))
        for name, note in notes.items():
            with self.subTest(name):
                self.check(os.path.join(DATA, name),
                           *(("--order", "column") if name in column else ()), note=note)
        for name in column:  # which say nothing of their order
            said = qrtool("factor", os.path.join(DATA, name), "q.h5", "--force")
            self.assertIn("/a is read as 3x5", said)
            self.assertIn("give --order column", said)

    def test_a_table_of_pandas_is_named(self):
        # What frame.to_hdf(..., format="table") of pandas 3.1 and PyTables 3.11 stores, without its
        # empty space.
        with h5py.File("table.h5", "w") as file:
            row = np.dtype([("index", "i8"), ("values_block_0", "f8", (3,))])
            file["A/table"] = np.zeros(5, row)
            file["A/table"].attrs["CLASS"] = np.bytes_("TABLE")
            for name, shape in (("bounds", (0, 127)), ("indices", (0, 131072)),
                                ("sorted", (0, 131072))):
                file.create_dataset("A/_i_table/index/" + name, shape, "i8",
                                    maxshape=(None, shape[1]))
        said = qrtool("factor", "table.h5", "q.h5", status=3)
        self.assertIn("dataset /A/table is a table of PyTables", said)
        self.assertIn("numpy.save", said)

    def test_standard_input(self):
        for name in ("pandas_names.csv.gz", "scipy.mtx", "r2.csv"):
            with open(os.path.join(DATA, name), "rb") as file:
                qrtool("factor", "-", "q.h5", "--force", stdin=file.read())
            qrtool("verify", os.path.join(DATA, name), "q.h5", "--index-column", "auto")

    def test_options_are_recorded(self):
        text = "made by X\nname|h|w|t\n" + "".join(
            f"p{i}|{row[0]}|{row[1]}|{row[2] if i != 3 else '?'}\n" for i, row in enumerate(A))
        with gzip.open("x.csv.gz", "wt") as file:
            file.write(text.replace("\n", "\r\n"))
        given = ("--delimiter", "pipe", "--skip-rows", "1")
        self.check("x.csv.gz", *given, "--columns", "w,h", expected=A[:, [1, 0]])
        with h5py.File("q.h5") as file:
            recorded = {name: value for name, value in file.attrs.items()
                        if name.startswith("csv_")}
        self.assertEqual({name: str(np.asarray(value).astype(str)) for name,
                          value in recorded.items()},
                         {"csv_delimiter": "pipe", "csv_decimal": "point", "csv_skip_rows": "1",
                          "csv_header": "yes",
                          "csv_index_column": "no", "csv_columns": "w,h"})
        said = qrtool("factor", "x.csv.gz", "q.h5", "-f", "-v", *given, "--index-column", "yes",
                      "--na-text", "?", "--na-text",
                      "none", status=1)
        self.assertIn("a missing number is read as NaN, the first at 6:", said)
        self.assertIn("delimiter pipe, decimal point, skip rows 1, header yes, index column yes, "
                      "na text ?", said)
        qrtool("verify", "x.csv.gz", "q.h5", status=1)
        # A CSV output records it, too; factors of plain numbers have no comments.
        qrtool("factor", "x.csv.gz", "q.csv", *given, "--columns", "2,3", "--na-text", "a",
               "--na-text", "b")
        self.assertEqual([line for line in lines_of("q.R.csv") if line.startswith("#")],
                         [f"# input: {each}\n"
                          for each in ("delimiter = pipe", "decimal = point", "skip_rows = 1",
     "header = yes", "index_column = no", "columns = 2,3", "na_text = a", "na_text = b")])
        qrtool("verify", "x.csv.gz", "q.csv")
        qrtool("verify", "x.csv.gz", "q.csv", "--delimiter", "comma", status=3)
        qrtool("factor", os.path.join(DATA, "octave.txt"), "plain.csv")
        self.assertNotIn("#", "".join(lines_of("plain.R.csv")))
        self.assertIn("--columns: '0-2'", qrtool("factor", "x.csv.gz", "q.h5", "--columns", "0-2",
                                               status=2))
        self.assertIn("not one of comma", qrtool("factor", "x.csv.gz", "q.h5", "--delimiter", "x",
                                                 status=2))
        self.assertIn("options of CSV", qrtool("verify", "q.h5:/Q", "q.h5", "--skip-rows", "1",
                                               status=2))

    def test_text_holds_batches_of_any_dimensions(self):
        """Text has one dimension for a batch; verify still finds each matrix."""
        random = np.random.default_rng(3)
        for leading in ((1,), (2, 3), (2, 1, 3)):
            np.save("a.npy", random.standard_normal((*leading, 5, 3)))
            for name in ("out.csv", "out.tsv", "out.txt") + ("out.mtx",) * (leading == (1,)):
                for options in ((), ("--mode", "raw"), ("--mode", "r"), ("--pivot",)):
                    qrtool("factor", "a.npy", name, "--force", *options)
                    self.assertIn(f"verified {np.prod(leading)} matri",
                                  qrtool("verify", "a.npy", name))
        np.save("a.npy", random.standard_normal((7, 5, 3)))
        said = qrtool("verify", "a.npy", "out.csv", status=3)
        self.assertIn("A is 7x5x3", said)
        np.save("a.npy", random.standard_normal((3, 2, 5, 3)))  # as many, and others
        self.assertIn("0 of 6 pass, 6 above the bar",
                      qrtool("verify", "a.npy", "out.csv", status=1))

    def test_what_does_not_fit_is_not_called_transposed_without_reason(self):
        np.save("a.npy", np.ones((4, 4)))
        with h5py.File("q.h5", "w") as file:
            file["Q"], file["R"] = np.ones((2, 4, 4)), np.ones((2, 4, 4))
        said = qrtool("verify", "a.npy", "q.h5", status=3)
        self.assertIn("for this A reduced factors are Q 4x4 and R 4x4", said)

    def test_verify_speaks_plainly_of_files_that_are_others(self):
        np.save("a.npy", A)
        with h5py.File("a.h5", "w") as file:
            file["A"] = A
        qrtool("factor", "a.h5", "q.h5")
        said = qrtool("verify", "a.npy", "q.h5")
        self.assertIn("q.h5 was made from the file a.h5, not from a.npy", said)
        self.assertNotIn("dataset", said)
        self.assertIn("hint: a.npy stands for the files a.Q.npy, a.R.npy and others",
                      qrtool("verify", "a.h5", "a.npy", status=3))

    def test_matrix_market_out(self):
        said = qrtool("factor", os.path.join(DATA, "scipy.mtx"), "o.mtx")
        self.assertIn("wrote o.Q.mtx, o.R.mtx, o.report.json", said)
        qrtool("verify", os.path.join(DATA, "r.csv"), "o.mtx")
        qrtool("factor", os.path.join(DATA, "scipy.mtx"), "o.mtx", status=5)
        for change in (lambda lines: lines[:-1] + ["0.25\n"],
                       lambda lines: lines[:3] + lines[4:] + lines[3:4]):
            kept = lines_of("o.Q.mtx")
            with open("o.Q.mtx", "w", encoding="utf-8") as file:
                file.writelines(change(kept))
            self.assertIn("o.Q.mtx, o.R.mtx is not the one that o.report.json describes",
                          qrtool("verify", os.path.join(DATA, "r.csv"), "o.mtx", status=3))
            with open("o.Q.mtx", "w", encoding="utf-8") as file:
                file.writelines(kept)
        with open("nan.csv", "w", encoding="utf-8") as file:
            file.write("1,nan\n3,4\n5,6\n")
        qrtool("factor", "nan.csv", "n.mtx", status=1)
        self.assertIn("it holds NaN or Inf", qrtool("verify", "nan.csv", "n.mtx", status=1))
        for name in ("nan.csv", "n.Q.mtx", "n.R.mtx", "n.report.json"):
            os.remove(name)
        qrtool("factor", os.path.join(DATA, "scipy.mtx"), "o.mtx", "--mode", "raw", "--force")
        self.assertEqual(sorted(os.listdir()), ["o.V.mtx", "o.report.json", "o.tau.mtx"])
        qrtool("verify", os.path.join(DATA, "r.csv"), "o.mtx")
        qrtool("generate", "--shape", "30000x20", "tall.mtx")
        qrtool("factor", "tall.mtx", "t.mtx", "--memory", "8MiB")
        qrtool("verify", "tall.mtx", "t.mtx", "--memory", "8MiB")
        qrtool("generate", "--shape", "3x2x2", "b.h5")
        self.assertIn("holds one matrix, not 3", qrtool("factor", "b.h5", "b.mtx", status=2))
        rows = [line for line in lines_of("tall.mtx") if not line.startswith("%")]
        self.assertEqual(len(rows), 1 + 30000 * 20)

    def test_pandas_now(self):
        try:
            import pandas as pd
        except ImportError:
            self.skipTest("pandas is not installed")
        names = pd.DataFrame(A, columns=["h", "w", "t"])
        pd.DataFrame(A).to_csv("a.csv")
        self.check("a.csv", note=INDEX)
        pd.DataFrame(A).to_csv("a.csv", index=False)
        self.check("a.csv", note="is taken for the names")
        names.to_csv("a.csv", sep="\t", index=False)
        self.check("a.csv")
        names.to_csv("a.csv", index_label="day")
        self.check("a.csv", "--index-column", "yes")
        self.check("a.csv", "--columns", "h,w,t")
        dated = names.assign(day=pd.date_range("2026-11-22", periods=5)).set_index("day")
        dated.to_csv("a.csv", sep=";", decimal=",")
        self.check("a.csv", "--columns", "2-4")
        names.to_csv("a.csv", quoting=1)
        self.check("a.csv", note=INDEX)
        missing = names.copy()
        missing.iloc[2, 1] = np.nan
        missing.to_csv("a.csv", index=False)
        self.assertIn("the first at 4:", qrtool("factor", "a.csv", "q.h5", "-f", status=1))
        pd.DataFrame(A.astype(int)).to_csv("a.csv", index=False)
        self.check("a.csv", "--header", "yes", expected=A.astype(int))

    def test_r_now(self):
        if shutil.which("Rscript") is None:
            self.skipTest("R is not installed")
        calls = ["write.csv(a, 'r1.csv')", "write.csv(a, 'r2.csv', row.names=FALSE)",
                 "write.csv2(a, 'r3.csv')",
                 "write.table(a, 'r4.txt')",
                 "write.table(a, 'r5.txt', col.names=FALSE, row.names=FALSE)",
                 "write.table(a, 'r6.txt', quote=FALSE, sep='\\t')",
                 "write.table(a, 'r7.txt', col.names=NA)",
                 "write.csv(a, gzfile('r8.csv'))"]
        subprocess.run(["Rscript", "-e", "; ".join([R_MATRIX, *calls])], check=True,
                       capture_output=True, timeout=120)
        noted = {"r1.csv", "r3.csv", "r4.txt", "r6.txt", "r7.txt", "r8.csv"}
        for name in sorted(name for name in os.listdir() if name.startswith("r")):
            with self.subTest(name):
                self.check(name, note=INDEX if name in noted else None)

    def test_octave_now(self):
        if shutil.which("octave-cli") is None:
            self.skipTest("Octave is not installed")
        calls = ["csvwrite('o1.csv', a);", "dlmwrite('o2.txt', a, ' ');", "save -text o3.txt a;",
                 "save -hdf5 o5.h5 a;", "b = cat(3, a, 2 * a); save -hdf5 b.h5 b;",
                 "dlmwrite('o4.csv', a, 'delimiter', ';', 'newline', 'pc');", "save -v7 o.mat a;"]
        subprocess.run(["octave-cli", "--no-gui", "--eval", " ".join([OCTAVE_MATRIX, *calls])],
                       check=False,
                       capture_output=True, timeout=120)
        for name in ("o1.csv", "o2.txt", "o3.txt", "o4.csv", "o5.h5"):
            with self.subTest(name):
                self.check(name)
        self.check("b.h5", expected=np.stack([A, 2 * A]))
        back = ("load b.h5; load q.h5 Q R; assert(size(Q), [5 3 2]);"
                "for i = 1:2 assert(Q(:,:,i) * R(:,:,i), b(:,:,i), 1e-13); end")
        subprocess.run(["octave-cli", "--no-gui", "--norc", "--eval", back], check=True,
                       capture_output=True, timeout=120)
        self.assertIn("save -v7.3", qrtool("factor", "o.mat", "q.h5", "-f", status=3))

    def test_netcdf_now(self):
        try:
            import netCDF4
        except ImportError:
            self.skipTest("netCDF4 is not installed")
        for name, kind in (("n.nc", "NETCDF4"), ("classic.nc", "NETCDF3_CLASSIC")):
            with netCDF4.Dataset(name, "w", format=kind) as file:
                for dimension, size in (("y", 5), ("x", 3)):
                    file.createDimension(dimension, size)
                    file.createVariable(dimension, "f8", (dimension,))[:] = np.arange(size)
                variable = file.createVariable("a", "f4", ("y", "x"), fill_value=-999.0)
                variable[:] = np.ma.masked_equal(A, 8.0)
        said = qrtool("factor", "n.nc", "q.h5", status=1)
        self.assertIn("1 not finite", said)
        self.assertIn("nccopy -k nc4 classic.nc",
                      qrtool("factor", "classic.nc", "q.h5", "-f", status=3))

    def test_scipy_now(self):
        try:
            from scipy import io, sparse
        except ImportError:
            self.skipTest("SciPy is not installed")
        io.mmwrite("a.mtx", A)
        self.check("a.mtx")
        io.mmwrite("s.mtx", A[:3] @ A[:3].T, symmetry="symmetric")
        self.check("s.mtx", expected=A[:3] @ A[:3].T)
        io.mmwrite("c.mtx", sparse.coo_matrix(A))
        self.assertIn("sparse", qrtool("factor", "c.mtx", "q.h5", "-f", status=3))
        qrtool("factor", "a.mtx", "o.mtx")
        np.testing.assert_allclose(io.mmread("o.Q.mtx") @ io.mmread("o.R.mtx"), A, atol=1e-13)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
