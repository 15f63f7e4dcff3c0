#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The columns of a table: what is read and solved has the numbers and the names that the user
meant."""
import bz2
import csv
import gzip
import json
import lzma
import os
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import unittest

import h5py
import numpy

from tool import QRTOOL, FolderTest, run

TABLE = "g,p,y1,y2\n10,2,3,1\n20,5,4,2\n30,7,9,9\n40,1,1,4\n"


def write(name, text):
    pathlib.Path(name).write_text(text, encoding="utf-8", newline="")


def lstsq(a, b):
    return numpy.linalg.lstsq(numpy.array(a, float), numpy.array(b, float), rcond=None)[0]


class Tables(FolderTest):
    def setUp(self):
        super().setUp()
        write("t.csv", TABLE)

    def solve(self, table, *options, text=None):
        """X, and what is said on the way."""
        done = run("solve", table, "o.csv", "-f", *options, input=text)
        with open("o.csv", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        responses = list(dict.fromkeys(line.get("response") for line in lines))
        x = [[float(line["x"]) for line in lines if line.get("response") == each]
             for each in responses]
        return numpy.array(x).T, done.stderr, done.stdout

    def refused(self, message, *args, text=None):
        self.assertIn(message, run(*args, status=3, input=text).stderr)

    def numbers(self, name, *options):
        return json.loads(run("info", name, "--json", *options).stdout)["factor_reads"]

    def test_a_column_without_a_name_is_no_weight(self):
        write("w.csv", "g,,a\n10,1,3\n20,2,4\n30,3,9\n40,4,1\n15,9,2\n")
        x, _, said = self.solve("w.csv", "--response", "a")
        wanted = lstsq([[10, 1], [20, 2], [30, 3], [40, 4], [15, 9]], [3, 4, 9, 1, 2])
        numpy.testing.assert_allclose(x.ravel(), wanted)
        self.assertIn("column 2 ", said)
        write("i.csv", ",g,p,a\n0,10,2,3\n1,20,5,4\n2,30,7,9\n3,40,1,1\n")
        rows = [[0, 10, 2], [1, 20, 5], [2, 30, 7], [3, 40, 1]]
        for option in ("--columns=1-4", "--index-column=no"):
            x, _, _ = self.solve("i.csv", "--response", "a", option)
            numpy.testing.assert_allclose(x.ravel(), lstsq(rows, [3, 4, 9, 1]))

    def test_a_selection_keeps_names_and_numbers_together(self):
        x, _, said = self.solve("t.csv:[:,1:]", "--response", "y1")
        numpy.testing.assert_allclose(x.ravel(),
                                      lstsq([[2, 1], [5, 2], [7, 9], [1, 4]], [3, 4, 9, 1]))
        self.assertIn("y2 ", said)
        self.refused("the selection of the file leaves out y2", "solve", "t.csv:[:,:3]", "o.csv",
                     "-f", "--response", "y2")
        x, _, _ = self.solve("t.csv:[:,1:]", "--response", "p", "--weights", "y2")
        w = numpy.sqrt([1, 2, 9, 4])
        numpy.testing.assert_allclose(
            x.ravel(), lstsq(w[:, None] * numpy.array([[3], [4], [9], [1]]), w * [2, 5, 7, 1]))
        self.assertEqual(self.numbers("t.csv:[:,1::2]")["columns"], ["p", "y2"])

    def test_columns_by_number(self):
        write("n.csv", TABLE.split("\n", 1)[1])
        rows = numpy.array([[10, 2, 3, 1], [20, 5, 4, 2], [30, 7, 9, 9], [40, 1, 1, 4]])
        for name in ("t.csv", "n.csv", "n.csv:[:,1:]"):
            first = 1 if "[" in name else 0
            x, _, _ = self.solve(name, "--response", "3")
            numpy.testing.assert_allclose(x.ravel(), lstsq(rows[:, [0, 1, 3][first:]], rows[:, 2]))
        x, _, said = self.solve("n.csv", "--response", "3", "--weights", "4")
        w = numpy.sqrt(rows[:, 3])
        numpy.testing.assert_allclose(x.ravel(), lstsq(w[:, None] * rows[:, :2], w * rows[:, 2]))
        self.assertIn("column 2 ", said)
        write("names.csv", "a,2,1\n1,5,9\n2,3,8\n3,3,3\n")
        self.refused("column 1 has this number, and column 3 this name", "solve", "names.csv",
                     "o.csv", "-f", "--response", "1")
        x, _, _ = self.solve("names.csv", "--response", "3-3")
        numpy.testing.assert_allclose(x.ravel(), lstsq([[1, 5], [2, 3], [3, 3]], [9, 8, 3]))

    def test_several_responses(self):
        rows = numpy.array([[10, 2, 3, 1], [20, 5, 4, 2], [30, 7, 9, 9], [40, 1, 1, 4]])
        for options in (("--response", "y1,y2"), ("--response", "y1", "--response", "y2"),
                        ("--response", "3-4")):
            x, _, _ = self.solve("t.csv", *options)
            numpy.testing.assert_allclose(x, lstsq(rows[:, :2], rows[:, 2:]))
        run("verify", "t.csv", "o.csv", "--response", "y1,y2")
        run("solve", "t.csv", "o.h5", "--response", "3-4")
        self.assertIn("responses = y1,y2", run("info", "-v", "o.h5").stdout)

    def test_two_columns_of_one_name(self):
        write("d.csv", "g,a,a\n1,2,3\n2,3,5\n3,5,1\n4,1,2\n")
        self.refused("the columns 2 and 3 have the same name, 'a'", "solve", "d.csv", "o.csv",
                     "--response", "a")
        self.refused("have the same name", "solve", "d.csv", "o.csv", "--response", "g",
                     "--weights", "a")
        self.refused("have the same name", "factor", "d.csv", "o.csv", "--columns", "a")
        x, notes, said = self.solve("d.csv", "--response", "2")
        numpy.testing.assert_allclose(x.ravel(),
                                      lstsq([[1, 3], [2, 5], [3, 1], [4, 2]], [2, 3, 5, 1]))
        self.assertIn("a (column 3)", said)
        self.assertIn("have the same name", notes)

    def test_a_response_that_columns_leave_out(self):
        done = run("solve", "t.csv", "o.csv", "--columns", "g,p", "--response", "y1", status=3)
        self.assertIn("--columns leaves out y1", done.stderr)
        self.assertIn("hint: --columns g,p,y1\n", done.stderr)
        done = run("solve", "t.csv", "o.csv", "--columns", "g-y1", "--response", "y1", status=3)
        self.assertIn("ranges are by number: --columns 1-3", done.stderr)

    def test_a_header_of_years(self):
        write("y.csv", "country,2018,2019,2020\nAT,1.5,2,3\nCL,4,5,6\nKE,7,8,10\nJP,2,2,7.5\n")
        for options in ((), ("--index-column", "yes"), ("--columns", "2-4")):
            self.refused("names and whole numbers", "factor", "y.csv", "-", "--mode", "r", *options)
        shape = self.numbers("y.csv", "--header", "yes", "--index-column", "yes")
        self.assertEqual((shape["shape"], shape["columns"]), ([4, 3], ["2018", "2019", "2020"]))
        write("a.csv", "a,1,2\n3,4,5\n6,7,9\n")  # a word above numbers
        self.assertEqual(self.numbers("a.csv")["columns"], ["a", "1", "2"])
        self.assertEqual(self.numbers("a.csv", "--columns", "2-3")["shape"], [2, 2])
        write("p.csv", "0,1,2\n0.5,1.5,2.5\n3.5,4.5,7.5\n1.5,2.5,3.5\n")  # pandas
        for options, columns in (((), 3), (("--columns", "1-2"), 2)):
            self.assertEqual(self.numbers("p.csv", *options)["shape"], [3, columns])
        write("i.csv", ",2018,2019\nAT,1,2\nCH,4,5\n")
        self.assertEqual(self.numbers("i.csv")["columns"], ["2018", "2019"])
        write("z.csv", "1990,1991,1992\n354,12,55\n355,44,66\n")
        for options in ((), ("--columns", "2-3")):
            self.assertIn("give --header yes", " ".join(self.numbers("z.csv", *options)["notes"]))

    def test_a_blank_line(self):
        write("b.csv", "a,b\n1,2\n2,3\n\n3,5\n4,1\n")
        x, notes, _ = self.solve("b.csv", "--response", "b")
        numpy.testing.assert_allclose(x.ravel(), lstsq([[1], [2], [3], [4]], [2, 3, 5, 1]))
        self.assertIn("line 4 is blank and is left out", notes)
        for options in ((), ("--response", "b")):  # verify repeats the doubt
            self.assertIn("line 4 is blank", run("verify", "b.csv", "o.csv", *options).stderr)
        self.assertIn("line 4 ends a matrix", " ".join(self.numbers("b.csv")["notes"]))
        write("c.csv", "a,b\n1,2\n2,3\n\n3,5\n")
        self.refused("remove line 4 if all is one matrix", "factor", "c.csv", "q.csv")

    def test_points_and_commas_that_may_be_others(self):
        write("s.csv", "1.234;2\n5.678;3\n")
        self.assertIn("separator of thousands", " ".join(self.numbers("s.csv")["notes"]))
        write("s.csv", "1.234;2\n5.6;3\n")
        self.assertEqual(self.numbers("s.csv")["notes"], [])
        write("l.csv", "8,5\n3,25\n")
        self.assertIn("--decimal comma", " ".join(self.numbers("l.csv")["notes"]))
        write("r.csv", "x\nra 8,5\nrb 3,25\nrc 1,75\n")
        self.refused("is the comma a decimal sign", "factor", "r.csv", "-", "--mode", "r")
        found = self.numbers("r.csv", "--delimiter", "space", "--decimal", "comma")
        self.assertEqual(found["shape"], [3, 1])

    def test_commas_between_columns_that_are_not_read(self):
        for text, column in (("259 33,3\n49 -8825511,8\n", "2"), ("13,02 -25,7\n-16,5 -7,9\n", "1"),
                             ("nan 23,002\n112 nan\n290 1,8\n", "1,2"),
                             ("NaN 0,9 70 -45,06\n82 274 -10 89\n-19,6 15,8 -12,6 3,7\n", "4,3")):
            write("d.csv", text)
            self.refused("is the comma a decimal sign", "factor", "d.csv", "-", "--mode", "r",
                         "--columns", column)
            found = self.numbers("d.csv", "--columns", column, "--delimiter", "space", "--decimal",
                                 "comma")
            self.assertEqual(found["shape"], [text.count("\n"), column.count(",") + 1])
        write("d.csv", "2020 01,5.5\n2020 02,6.5\n")
        self.assertEqual(self.numbers("d.csv", "--columns", "2")["shape"], [2, 1])

    def test_matrix_market_without_its_first_line(self):
        for text in ("0 3\n", "3 3 2\n1 1 5\n2 2 6\n"):
            self.refused("Matrix Market without its first line", "factor", "-", "o.h5", text=text)
        run("factor", "-", "o.h5", "--header", "no", input="3 3 2\n1 1 5\n2 2 6\n")
        run("factor", "-", "o.h5", "-f", input="3 3 2\n1 1 5\n")

    def test_a_damaged_first_line_of_matrix_market(self):
        numbers = "2 2\n1 2\n3 4\n5 6\n7 9\n"
        for first in ("%%MatriMarket matrix array complex general",
                      "%%MatrixMarkes matrix brray complex general",
                      "%MatrixMarket matrix array complex general"):
            text = f"{first}\n{numbers}"
            with gzip.open("m.mtx.gz", "wt") as file:
                file.write(text)
            write("m.txt", text)
            for name, given in (("m.mtx.gz", None), ("m.txt", None), ("-", text)):
                self.refused("damaged first line", "factor", name, "o.h5", "-f", text=given)
            run("factor", "m.txt", "o.h5", "-f", "--skip-rows", "1")
        lost = f"% a comment\n{numbers}"
        with gzip.open("m.mtx.gz", "wt") as file:
            file.write(lost)
        for name, given in (("m.mtx.gz", None), ("-", lost)):
            self.refused("Matrix Market without its first line", "factor", name, "o.h5", "-f",
                         text=given)
        run("factor", "-", "o.h5", "-f", input=numbers)
        run("factor", "-", "o.h5", "-f", input="% complex symmetric matrix\n1 2\n3 4\n")

    def test_one_wrong_character_before_numbers(self):
        """Text of Matrix Market and of Octave is what it was, or refused: never a table."""
        numbers = "2 2\n1 2\n3 4\n5 6\n7 9\n"
        texts = {"m.mtx.gz": ("%%MatrixMarket matrix array complex general\n", numbers),
                 "s.txt.gz": ("# Created by Octave 7.3.0, Sun Nov 29 10:15:41 2026 UTC <u@h>\n"
                              "# name: S\n# type: sparse matrix\n# nnz: 2\n# rows: 2\n",
                              "# columns: 2\n1 1 5\n2 2 6\n")}
        chance = random.Random(3)
        for name, (head, rest) in texts.items():
            for _ in range(40):
                at, other = chance.randrange(len(head)), chr(chance.randrange(33, 127))
                before, behind = head[:at], head[at + 1:]
                changed = before + chance.choice((other, "", other + head[at])) + behind
                with gzip.open(name, "wt") as file:
                    file.write(changed + rest)
                with open(name, "rb") as file:
                    given = file.read() if chance.random() < 0.3 else None
                done = subprocess.run(
                    [QRTOOL, "factor", "-" if given else name, "o.npz", "-fq"], input=given,
                    capture_output=True, check=False, timeout=60)
                if done.returncode != 0:
                    self.assertEqual(done.returncode, 3, (changed, done.stderr))
                    continue
                with numpy.load("o.npz") as out:
                    self.assertEqual((out["Q"].dtype, out["R"].shape), ("c16", (2, 2)), changed)

    def test_files_of_r(self):
        pathlib.Path("x.rds").write_bytes(b"X\n\0\0\0\x03\0\x04")
        pathlib.Path("x.csv").write_bytes(b"RDX3\nX\n\0\0\0\x03\0\x04")
        for name in ("x.rds", "x.csv"):
            with open(name, "rb") as file:
                done = subprocess.run([QRTOOL, "info", "-" if name == "x.rds" else name],
                                      stdin=file, capture_output=True, check=False, timeout=60)
            self.assertIn(b'write.csv(x, "x.csv")', done.stderr)

    def test_other_programs_files(self):
        text_of_r = b"A\n3\n262658\n197888\n5\nUTF-8\n526\n4\n1\n2\n3\n4.5\n"
        numbers = struct.pack("<4d", 1, 2, 3, 4)
        cases = [(name, data, "a file of R", 'write.csv(x, "x.csv")') for name, data in (
            ("u.rds", b"X\n\0\0\0\x03\0\x04\x02\0"), ("n.bin", b"B\n\x03\0\0\0\x02\x02\x04\0"),
            ("u.RData", b"RDX3\nX\n\0\0\0\x03"), ("a.RData", b"RDA3\n" + text_of_r),
            ("a.rds", gzip.compress(text_of_r)), ("t.csv", text_of_r), ("a.rds", text_of_r),
            ("x.rds", lzma.compress(text_of_r)), ("b.Rda", bz2.compress(b"RDX3\nX\n")),
            ("text.rds", b"1,2\n3,4\n"))]
        cases += [("v4.mat", struct.pack(f"{order}5I", kind, 2, 2, 0, 2) + b"x\0" + numbers,
                   "a MAT-file of version 4", "in Octave by save -hdf5")
                  for order, kind in (("<", 0), (">", 1010))]
        octave = b"Octave-1-L\0\1\0\0\0x\0\0\0\0\xff\6\0\0\0matrix"
        cases += [(name, data, "a binary file of Octave", "in Octave by save -hdf5")
                  for name, data in (("b.mat", octave), ("b.gz", gzip.compress(octave)))]
        array = numpy.eye(2)
        cases += [(f"p.{ending}", pickle.dumps(data, protocol), "a pickle of Python",
                   "numpy.save('a.npy', array)")
                  for data in (array, array.tolist(), {"a": array}) for protocol in range(6)
                  for ending in ("bin", "csv")]
        for name, data, what, hint in cases:
            pathlib.Path(name).write_bytes(data)
            message = run("factor", name, "q.h5", status=3).stderr
            self.assertIn(f"{name}: {what}; it cannot be read\nhint: ", message)
            self.assertIn(hint, message)
        # Names of columns alone are no such file.
        write("r.csv", "RDX3,PAR1\n1,2\n3,4\n")
        self.assertEqual(self.numbers("r.csv")["columns"], ["RDX3", "PAR1"])

    def test_words_of_the_command_line(self):
        write("m.csv", "1,--\n2,3\n")
        for options in (("--na-text", "--"), ("--na-text=--",)):
            self.assertEqual(self.numbers("m.csv", *options)["shape"], [2, 2])
        self.assertIn("cannot read 'a.h5'",
                      run("--dataset", "solve", "factor", "a.h5", "q.h5", status=3).stderr)
        self.assertIn("a blank stands within a number", run("info", "t.csv:[1 0]", status=2).stderr)
        self.assertEqual(self.numbers("t.csv:[ 1 : 3 , : ]")["shape"], [2, 4])
        self.assertIn("cannot be standard input together",
                      run("solve", "-", "-", "o.csv", status=2).stderr)
        self.assertNotIn("empty", run("info", "-", input="1,2\n").stdout)
        write("q.csv", '"a""b",c\n1,2\n')
        self.assertEqual(self.numbers("q.csv")["columns"], ['a"b', "c"])
        write("r.tab", "a b\n1 2\n3 4\n5 7\n")
        self.assertIn("let the name end in .csv",
                      run("solve", "r.tab", "o.csv", "--response", "a", status=3).stderr)

    def test_columns_of_text(self):
        write("k.csv", "n,country,ok,b\n1,AT,True,4\n2,CH,False,5\n")
        self.assertIn("leave the columns 'country', 'ok' out: --columns n,b",
                      run("factor", "k.csv", "q.csv", status=3).stderr)
        write("k.csv", "n,ok,b\n1,True,4\n2,False,5\n")
        self.assertIn("write 1 and 0", run("factor", "k.csv", "q.csv", status=3).stderr)
        write("k.csv", "date,a,b\n2020-01-01,1.5,2\n2020-01-02,3,4\n")
        self.assertIn("--index-column yes", run("factor", "k.csv", "q.csv", status=3).stderr)

    def test_signs_of_comments_in_names_and_keys(self):
        write("p.csv", "id,gdp %,infl #1\n1,1.5,3\n2,2.5,2\n3,0.5,4\n4,3.5,1\n5,2,2\n")
        found = self.numbers("p.csv")
        self.assertEqual((found["columns"], found["shape"]), (["id", "gdp %", "infl #1"], [5, 3]))
        x, _, said = self.solve("p.csv", "--response", "gdp %", "--columns", "2-3")
        self.assertIn("infl #1 ", said)
        numpy.testing.assert_allclose(x.ravel(), lstsq([[3], [2], [4], [1], [2]],
                                                       [1.5, 2.5, 0.5, 3.5, 2]))
        write("k.csv", "y,x,key\n1,1,A#1\n2,2,A#1\n9,1,A#2\n7,2,A#2\n")
        run("solve", "k.csv", "o.csv", "-f", "--response", "y", "--by", "key")
        with open("o.csv", encoding="utf-8") as file:
            self.assertEqual([line["key"] for line in csv.DictReader(file)], ["A#1", "A#2"])
        for line in ("a b #c", "a b % c"):
            write("s.csv", line + "\n1 2 3\n4 5 6\n")
            self.refused("2 names before its comment", "factor", "s.csv", "-", "--mode", "r")
        write("s.csv", "1 2 # one, two\n3 4\n")
        self.assertIn("the comment at the end of line 1 is left out",
                      self.numbers("s.csv")["notes"])

    def test_comments_that_may_be_names_or_rows(self):
        write("c.csv", "# a,b\n1,2\n#3,4\n5,6\n")
        notes = " ".join(self.numbers("c.csv")["notes"])
        self.assertIn("line 1, a comment, is taken for the names of the columns", notes)
        self.assertIn("line 3 looks like a row that begins with # or %", notes)

    def test_headers_with_gaps(self):
        for text in ("c,k,2018,2019,\nA,x,1.5,2,\nB,y,4,5,\n", "c;k;2018;;NA\nA;x;1.5;2;3\n",
                     "NA,2018,2019\nAT,1.5,2\nCH,4,5\n", "c,NA\nAT,1\nCH,2\n"):
            write("h.csv", text)
            self.refused("are they the names of the columns", "factor", "h.csv", "-", "--mode", "r",
                         "--columns", "2")
        write("h.csv", "a,NA,b\n1,2,3\n4,5,7\n")
        self.assertEqual(self.numbers("h.csv")["columns"], ["a", "NA", "b"])
        write("h.csv", "2018,2019,\n1,2,\n3,4,\n")
        self.assertIn("--header yes", " ".join(self.numbers("h.csv", "--columns", "1-2")["notes"]))

    def test_numbers_of_microsoft(self):
        write("m.csv", "x,y\n1,3\n2,1.#QNAN\n3,7\n4,-1.#IND00\n5,11\n")
        x, notes, _ = self.solve("m.csv", "--response", "y", "--intercept", "--missing", "skip")
        numpy.testing.assert_allclose(x.ravel(), [1, 2])
        self.assertIn("2 missing numbers", notes)
        write("m.csv", "1,1.#INF\n-1.#INF,2\n")
        self.assertIn("2 numbers are read as infinite, the first at 1:3: '1.#INF'",
                      self.numbers("m.csv")["notes"])

    def test_numbers_of_accountants(self):
        write("a.csv", "x,y\n1,(987.65)\n2,12\n3,(3)\n")
        self.refused("'(987.65)' is not a number", "solve", "a.csv", "o.csv", "--response", "y")
        write("a.csv", "x,y\n1,12 %\n2,13 %\n")
        self.refused("'12 %' is not a number", "factor", "a.csv", "-", "--mode", "r")
        numpy.savetxt("c.csv", numpy.array([[1 + 2j, 3], [4 - 1j, 2j]]), delimiter=",")
        run("factor", "c.csv", "q.npz")
        q = numpy.load("q.npz")
        numpy.testing.assert_allclose(q["Q"] @ q["R"], [[1 + 2j, 3], [4 - 1j, 2j]])

    def test_integers_that_float64_does_not_hold(self):
        large, said = 2**60 + numpy.arange(12).reshape(6, 2), "beyond 2^53, which float64 rounds"
        write("i.csv", f"{2**53},1\n{2**53 + 1},2\n")
        self.assertIn("a whole number has more digits than float64 holds, the first at 2:1: "
                      "'9007199254740993' is read as 9007199254740992",
                      self.numbers("i.csv")["notes"])
        for kind in ("<i8", ">u8"):
            numpy.save("i.npy", large.astype(kind))
            with h5py.File("i.h5", "w") as file:
                file["a"] = large.astype(kind)
                file["small"] = large.astype(kind) - 2**60
                file["even"] = (large - large % 2048).astype(kind)
            for name in ("i.npy", "i.h5:/a"):
                self.assertIn(said, run("factor", name, "-", "--mode", "r").stderr)
                self.assertIn(said, run("solve", name, "i.h5:/small[:,0]", "x.npy", "-f").stderr)
            self.assertIn(said, run("factor", "i.h5:/a", "-", "--mode", "r", "--raw-values").stderr)
            for name in ("i.h5:/small", "i.h5:/even"):
                self.assertNotIn(said, run("factor", name, "-", "--mode", "r").stderr)

    def test_a_table_is_parsed_once(self):
        """The tool reads little more than the file once; what it reads again is below 1 MiB."""
        rows = 300000
        with open("big.csv", "w", encoding="utf-8") as file:
            file.write("a,b,y,w\n")
            for row in range(rows):
                file.write(f"{row % 97}.5,{row % 89}.25,{row % 83}.125,{1 + row % 3}\n")
        size = os.path.getsize("big.csv")

        def read_by(*options):
            script = ('import subprocess,sys; p=subprocess.Popen(sys.argv[1:],stdout=-3);'
                      'import os; os.waitid(os.P_PID,p.pid,os.WEXITED|os.WNOWAIT);'
                      'print(open(f"/proc/{p.pid}/io").read()'
                      ' if os.path.exists(f"/proc/{p.pid}/io") else ""); p.wait()')
            text = subprocess.run([sys.executable, "-c", script, QRTOOL, "solve", "big.csv",
                                   "o.csv", "-q", "-f", "--response", "y", "--weights", "w",
                                   *options],
                                  capture_output=True, text=True, check=True, timeout=300).stdout
            return int(text.split("rchar: ")[1].split()[0])

        self.assertLess(read_by(), size + (8 << 20))
        # What --memory leaves no room for is read again, with the same result.
        whole = pathlib.Path("o.csv").read_text("utf-8")
        self.assertLess(size + (8 << 20), read_by("--memory", "16MiB"))
        self.assertEqual(pathlib.Path("o.csv").read_text("utf-8"), whole)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
