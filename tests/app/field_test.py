#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files as known publishers of data make them, with numbers drawn here: what is refused at first is
read after one message, and x is that of NumPy for the numbers that the file was made of."""
import csv
import pathlib
import sys
import unittest

import numpy as np

from tool import FolderTest, hint_of, run

RNG = np.random.default_rng(12)
TABLE = np.round(RNG.normal(5, 3, (24, 3)), 2)
SHORT = np.round(RNG.normal(5000, 900, (8, 3)))


def lines(table, form):
    return "".join(form.format(i, *row) for i, row in enumerate(table))


class Case:
    """A file, the table that it holds, and the options; `then`: what one hint adds to them."""

    def __init__(self, text, table, options, then=(), encoding="utf-8"):
        self.text, self.table, self.options, self.then = text, table, options, list(then)
        self.encoding = encoding


NAMED = ["--response", "c", "--a", "a,b"]
LAST = "".join(f"{year},{value}\n" for year, value in ((1927, 29.47), (1928, 35.39)))
CASES = {
    "factors of returns, with a second table": Case(
        "This file was created from the data of 202501.\nRates are from elsewhere.\n\n,a,b,c\n"
        + lines(TABLE, "{0:06d},{1:8.2f},{2:8.2f},{3:8.2f}\n")
        + "\n Annual Factors: January-December \n,a,b,c\n" + LAST, TABLE, NAMED,
        ["--end-row", "29"]),
    "indicators of countries by years": Case(
        '\ufeff"Data Source","World Indicators",\n\n"Last Updated Date","2026-01-28",\n\n'
        '"Country Name","Country Code","2018","2019","2020",\n'
        + lines(SHORT, '"Land {0}","L{0}","{1}","{2}","{3}",\n'), SHORT,
        ["--response", "2020", "--a", "2018,2019"]),
    "a weather station with a last column of marks": Case(
        "STATION;DATE;a;b;c;eor\n" + lines(TABLE, "44;2024{0:04d};{1:6.2f};{2:6.2f};{3:6.2f};eor\n")
        + "44;20250101;-999;4;5;eor\n", TABLE, [*NAMED, "--na-text", "-999", "--missing", "skip"]),
    "temperatures below a title": Case(
        "Land-Ocean: Global Means\na,b,c\n" + lines(TABLE, "{1},{2},{3}\n") + "5,***,7\n", TABLE,
        [*NAMED, "--missing", "skip"], ["--na-text", "***"]),
    "a data logger": Case(
        '"TOA5","1111","CRX","own","x"\n"TIMESTAMP","a","b","c"\n"TS","m/s","m/s","C"\n'
        '"","","","Smp"\n' + lines(TABLE, '"2012-06-07 13:{0:02d}:00",{1},{2},{3}\n'), TABLE,
        NAMED),
    "names behind a sign": Case("# made today\n# a,b,c\n" + lines(TABLE, "{1},{2},{3}\n"), TABLE,
                                NAMED),
    "Swiss thousands": Case("a;b;c\n" + "".join(
        ";".join(f"{value:,.0f}".replace(",", "'") for value in row) + "\n" for row in SHORT),
        SHORT, NAMED, ["--thousands", "apostrophe"]),
    "an export of Excel in Latin-1": Case(
        "a;b;Länge\n" + lines(TABLE, "{1};{2};{3}\n").replace(".", ","), TABLE,
        ["--response", "Länge"], encoding="latin-1"),
}


class Field(FolderTest):
    def judge(self, case):
        pathlib.Path("t.csv").write_bytes(case.text.encode(case.encoding))
        command = ["solve", "t.csv", "o.csv", "-f", "--intercept", *case.options]
        if case.then:
            hint = hint_of(run(*command, status=3).stderr)
            self.assertIn(" ".join(case.then), hint.replace("'", ""))
        run(*command, *case.then)
        with open("o.csv", encoding="utf-8") as file:
            found = [float(line["x"]) for line in csv.DictReader(file)]
        a = np.column_stack([np.ones(len(case.table)), case.table[:, :2]])
        expected = np.linalg.lstsq(a, case.table[:, 2], rcond=None)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-8)

    def test_files_of_publishers(self):
        for name, case in CASES.items():
            with self.subTest(name):
                self.judge(case)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
