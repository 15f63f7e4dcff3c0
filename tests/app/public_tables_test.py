#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables as offices, loggers and spreadsheets publish them: titles above the names, units below,
names in a comment, footnotes, further tables, thousands, texts in other encodings. What is read is
compared with the numbers that the table was made of."""
import csv
import io
import json
import pathlib
import subprocess
import sys
import unittest
import zipfile

import h5py
import numpy as np

from tool import QRTOOL, FolderTest, hint_of, run

X = np.array([1., 2, 3, 5, 8, 13])
Y = np.array([2.5, 3.75, 6, 9.25, 17, 26.5])


def write(name, text, encoding="utf-8"):
    pathlib.Path(name).write_bytes(text.encode(encoding))


def rows(separator=",", end="\n", before=""):
    return "".join(f"{before}{x:g}{separator}{y}{end}" for x, y in zip(X, Y))


class PublicTables(FolderTest):
    def fit(self, text, *options, encoding="utf-8", names=("x", "y")):
        """What a regression of y on x says, which must have the right coefficients."""
        write("t.csv", text, encoding)
        done = run("solve", "t.csv", "o.csv", "-f", "--response", names[1], "--a", names[0],
                   "--intercept", *options)
        with open("o.csv", encoding="utf-8") as file:
            found = {line["term"]: float(line["x"]) for line in csv.DictReader(file)}
        slope, intercept = np.polyfit(X, Y, 1)
        np.testing.assert_allclose([found["(intercept)"], found[names[0]]], [intercept, slope],
                                   rtol=1e-9)
        run("verify", "t.csv", "o.csv", "--response", names[1], "--a", names[0], "--intercept")
        return done.stderr

    def refused(self, text, *options):
        write("t.csv", text)
        said = run("solve", "t.csv", "o.csv", "-f", "--response", "y", "--a", "x", *options,
                   status=3).stderr
        return said, hint_of(said)

    def numbers(self, text, *options):
        """The matrix that `factor` reads, from its R."""
        write("t.csv", text)
        done = run("factor", "t.csv", "o.h5", "-f", *options)
        with h5py.File("o.h5") as file:
            return file["Q"][:] @ file["R"][:], dict(file.attrs), done.stderr

    def test_lines_above_the_names_are_left_out_and_said(self):
        for above in ("Quarterly output\n", "Source:;none\n\n", "a title, with a comma\nand more\n",
                      "Station 12\n\n", "\ufeffTitle\n\n\n"):
            with self.subTest(above=above):
                line = above.count("\n") + 1
                said = self.fit(above + "x,y\n" + rows())
                self.assertIn(f"line {line} is taken for the names of the columns; --names-row N "
                              "says another line", said)
                self.fit(above + "x,y\n" + rows(), "--names-row", str(line))

    def test_a_line_that_looks_like_a_row_is_never_left_out(self):
        said, hint = self.refused("7,8\nx,y\n" + rows())
        self.assertNotIn("is taken", said)
        self.assertIn("--names-row 2", hint)
        self.fit("7,8\nx,y\n" + rows(), "--names-row", "2")

    def test_years_are_names_below_a_title(self):
        text = "Data Source,World Indicators,\n\ncountry,code,2018,2019,2020,\n"
        text += "A,x,1.5,2,3,\nB,y,4,5,7,\nC,z,7,8,8.5,\nD,w,1,0,2,\n"
        a, attributes, said = self.numbers(text, "--columns", "3-5")
        np.testing.assert_allclose(a, [[1.5, 2, 3], [4, 5, 7], [7, 8, 8.5], [1, 0, 2]], atol=1e-12)
        self.assertEqual(attributes["csv_names_row"], "3")
        self.assertIn("line 3 is taken for the names", said)

    def test_units_are_kept_in_the_report(self):
        said = self.fit("x,y\ns,m/s\n" + rows())
        self.assertIn("line 2 holds no number and is left out as units: 's,m/s'", said)
        report = json.loads(pathlib.Path("o.report.json").read_text(encoding="utf-8"))
        self.assertEqual(report["qrtool"]["csv_units"], "s, m/s")
        a, attributes, _ = self.numbers("x,y\ns,m/s\n" + rows())
        np.testing.assert_allclose(a, np.column_stack([X, Y]), atol=1e-12)
        self.assertEqual(attributes["csv_units"], "s, m/s")
        logger = ('"TOA5","1111","CRX","own"\n"TIMESTAMP","x","y"\n"TS","m/s","C"\n"","Smp","Smp"\n'
                  + rows(before='"2012-06-07 13:00:00.05",'))
        said = self.fit(logger)
        self.assertIn("line 1 is left out, and line 2 is taken for the names", said)
        self.assertIn("line 4 holds no number", said)

    def test_a_row_of_texts_is_no_line_of_units(self):
        said, hint = self.refused("name,x,y\nA,low,?\n" + rows(before="B,"))
        self.assertIn(":2:", said)
        self.assertNotIn("left out as units", said)
        # Whoever states the line of names says so of all lines without numbers.
        self.fit("name,x,y\nA,low,?\n" + rows(before="B,"), "--names-row", "1")
        self.assertNotIn("--end-row", hint)

    def test_names_may_stand_in_a_comment(self):
        for above in ("# x,y\n", "#made by hand\n#x,y\n", "% x,y\n"):
            with self.subTest(above=above):
                said = self.fit(above + rows())
                self.assertIn("a comment, is taken for the names of the columns", said)
        np.savetxt("t.txt", np.column_stack([X, Y]), header="x y")
        run("solve", "t.txt", "o.csv", "-f", "--response", "y")
        a, attributes, said = self.numbers("# a remark: two, columns\n" + rows())
        self.assertNotIn("csv_names_row", attributes)
        self.assertIn("if it holds the names of the columns: --names-row 1", said)
        np.testing.assert_allclose(a, np.column_stack([X, Y]), atol=1e-12)
        self.fit("# x y\n" + rows(" "), "--names-row", "1")

    def test_a_table_ends_where_another_begins(self):
        for below in ("\nAnnual means\nx,y\n1,2\n", "Source: the office\n", "x,z\n1,2\n"):
            with self.subTest(below=below):
                said, hint = self.refused("x,y\n" + rows() + below)
                self.assertRegex(said, r"^qrtool: t\.csv:[89]:")
                end = 7 + below.startswith("\n")
                self.assertIn(f"--end-row {end}", hint)
                self.fit("x,y\n" + rows() + below, "--end-row", str(end))
        # A header that is repeated within the rows does not end them.
        self.assertNotIn("--end-row", self.refused("x,y\n" + rows() + "x,y\n" + rows())[1])

    def test_every_line_may_end_with_a_separator(self):
        for separator in (",", ";", "\t"):
            text = f"x{separator}y{separator}\n" + rows(separator, separator + "\n")
            a, _, said = self.numbers(text)
            np.testing.assert_allclose(a, np.column_stack([X, Y]), atol=1e-12)
            self.assertIn("column 3 is empty and is left out", said)
        a, _, _ = self.numbers(rows(end=",\n"))
        self.assertEqual(a.shape, (6, 2))
        text = "x,y,\n" + rows(end=",\n") * 4 + "1,2,3\n"
        write("t.csv", text)
        said = run("factor", "t.csv", "o.h5", "-f", status=3).stderr
        self.assertIn("t.csv:26:5: '3' is in column 3, which is empty in the first rows", said)

    def test_thousands(self):
        for options, table in (
                (["--thousands", "point"], "x;y\n1.000;2.500,25\n20;3,5\n-1.234.567;7\n"),
                (["--thousands", "comma"], 'x;y\n"1,000";2,500.25\n20;3.5\n-1,234,567;7\n'),
                (["--thousands", "space", "--decimal", "comma"],
                 "x;y\n1\u00a0000;2 500,25\n20;3,5\n-1\u202f234 567;7\n"),
                (["--thousands", "'"], "x;y\n1'000;2\u2019500.25\n20;3.5\n-1'234'567;7\n")):
            with self.subTest(options=options):
                a, attributes, _ = self.numbers(table, *options)
                np.testing.assert_allclose(a, [[1000, 2500.25], [20, 3.5], [-1234567, 7]],
                                           rtol=1e-12)
                self.assertIn("csv_thousands", attributes)
                run("verify", "t.csv", "o.h5")
        write("t.csv", "x;y\n278.719,45;1\n10,5;2\n3;7\n")
        hint = hint_of(run("factor", "t.csv", "o.h5", "-f", status=3).stderr)
        self.assertIn("--thousands point", hint)
        write("t.csv", "x;y\n1.5;2\n3;4\n5;1\n")
        run("factor", "t.csv", "o.h5", "-f", "--thousands", "point", status=3)
        self.assertIn("is not one of", run("factor", "t.csv", "o.h5", "--thousands", "dot",
                                           status=2).stderr + " is not one of")

    def test_names_become_utf_8(self):
        said = self.fit("Größe;y\n" + rows(";"), encoding="cp1252", names=("Größe", "y"))
        self.assertIn("Windows-1252", said)
        self.assertNotIn("Windows-1252", self.fit("Größe;y\n" + rows(";"), names=("Größe", "y")))
        write("k.csv", "k,x,y\nä,1,2\nä,2,3\nö,1,4\nö,3,7\n", "latin-1")
        text = run("solve", "k.csv", "-", "--response", "y", "--by", "k").stdout
        self.assertEqual([row["k"] for row in csv.DictReader(io.StringIO(text))], ["ä", "ö"])
        write("u.csv", "x,y\n1,2\n", "utf-16")
        self.assertIn("iconv", hint_of(run("factor", "u.csv", "o.h5", status=3).stderr))

    def test_numbers_that_may_be_missing_are_said(self):
        for code, others, is_said in ((-999, X, True), (9999, X, True), (-99.9, X, True),
                                      (-999, X * 1000 - 5000, False), (-998, X, False),
                                      (-999, X * 100 - 900, False)):
            text = "x,y\n" + "".join(f"{x},{i}\n" for i, x in enumerate([*others, code, code]))
            _, _, said = self.numbers(text)
            self.assertEqual("if it means a missing number: --na-text" in said, is_said, code)
        text = "x,y\n" + rows() + "-999,4\n"
        self.assertIn("'x' holds -999 once", self.numbers(text)[2])
        self.fit(text, "--na-text", "-999", "--missing", "skip")

    def test_only_named_columns_are_read(self):
        text = "date,x,note,y\n" + "".join(
            f"2020-01-0{i},{x},{'n/a yet'},{y}\n" for i, (x, y) in enumerate(zip(X, Y), 1))
        self.fit(text)
        write("w.csv", text.replace("note", "w").replace("n/a yet", "2"))
        run("solve", "w.csv", "o.csv", "-f", "--response", "y", "--a", "x", "--weights", "w")
        said = run("solve", "t.csv", "o.csv", "-f", "--response", "y", "--a", "z", status=3).stderr
        self.assertIn("there is no column 'z'", said)
        said = run("solve", "t.csv", "o.csv", "-f", "--response", "y", "--a", "note",
                   status=3).stderr
        self.assertIn("'n/a yet' is not a number", said)

    def test_a_text_in_a_zip_archive(self):
        text = "a title\nx,y\n" + rows()
        with zipfile.ZipFile("t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("in/t.csv", text)
        run("solve", "t.zip", "o.csv", "--response", "y", "--a", "x", "--intercept")
        run("verify", "t.zip", "o.csv", "--response", "y", "--a", "x", "--intercept")
        with open("o.csv", encoding="utf-8") as file:
            found = [float(line["x"]) for line in csv.DictReader(file)]
        np.testing.assert_allclose(found, np.polyfit(X, Y, 1)[::-1], rtol=1e-9)
        whole = pathlib.Path("t.zip").read_bytes()
        for place in range(45, len(whole), 7):
            damaged = bytearray(whole)
            damaged[place] ^= 0x10
            pathlib.Path("d.zip").write_bytes(damaged)
            done = subprocess.run([QRTOOL, "factor", "d.zip", "r.csv", "-f", "--mode", "r"],
                                  check=False, capture_output=True, text=True)
            self.assertIn(done.returncode, (0, 3), (place, done.stderr))
            if done.returncode == 0:  # what is damaged has no part in the text
                self.assertIn("6x2", done.stdout)
        with zipfile.ZipFile("t.zip", "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("notes.txt", "more")
        hint = hint_of(run("factor", "t.zip", "r.csv", "-f", status=3).stderr)
        self.assertEqual(hint, "unpack it: unzip -p t.zip in/t.csv > t.csv")

    def test_wrong_uses_have_one_clear_line(self):
        write("t.csv", "x,y\n" + rows())
        for options, status, message in (
                (["--names-row", "0"], 2, "--names-row"),
                (["--names-row", "40"], 3, "--names-row 40, but there are 7 lines"),
                (["--end-row", "40"], 3, "--end-row 40, but there are 7 lines"),
                (["--end-row", "1"], 3, "holds no numbers up to line 1"),
                (["--names-row", "1", "--header", "no"], 2, "contradict each other")):
            with self.subTest(options=options):
                said = run("factor", "t.csv", "o.h5", "-f", *options, status=status).stderr
                self.assertIn(message, said)
        np.save("a.npy", np.eye(3))
        said = run("factor", "a.npy", "o.h5", "--thousands", "comma", "--end-row", "3",
                   status=2).stderr
        self.assertIn("options of CSV: --thousands, --end-row", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
