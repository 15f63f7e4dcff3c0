#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One regression for each group of a table (`solve --by`), from outside: against NumPy for every
group, keys of all kinds, groups that have no answer, pipes, scratch files, and what is refused."""
import csv
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

import h5py
import numpy as np

from tool import QRTOOL, FolderTest, hint_of, limited, run

COUNT_CALLS = os.path.abspath(sys.argv[2])
MIB = 1 << 20
LAST = ["rank", "r2", "condition", "status"]


def write(name, text):
    pathlib.Path(name).write_text(text, encoding="utf-8", newline="")


def table_of(columns, names):
    """A table as text; a field of text is quoted where it must be."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in zip(*columns):
        writer.writerow([field if isinstance(field, str) else repr(float(field)) for field in row])
    return out.getvalue()


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def numbers(row, names):
    return np.array([float(row[name]) for name in names])


class By(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(7)

    def solve(self, *options, status=0, table="t.csv", response="y", by="g", **more):
        """The lines of the output, and the run."""
        done = run("solve", table, "o.csv", "-f", "--response", response, "--by", by, *options,
                   status=status, **more)
        return rows_of(pathlib.Path("o.csv").read_text(encoding="utf-8")), done

    def ragged(self, groups=60, columns=3, most=40):
        """Rows of groups of many sizes, in no order, and a table of them."""
        sizes = self.random.integers(columns + 2, most, groups)
        keys = np.repeat(np.arange(groups), sizes)
        self.random.shuffle(keys)
        a = self.random.standard_normal((len(keys), columns))
        y = a @ np.arange(1, columns + 1) + 0.1 * self.random.standard_normal(len(keys)) + keys
        names = ["g"] + [f"x{j}" for j in range(columns)] + ["y"]
        write("t.csv", table_of([[f"k{key}" for key in keys], *a.T, y], names))
        return keys, a, y

    def expect_row(self, row, a, b, names, weights=None):
        """A line of the output is what NumPy finds for these rows."""
        root = np.ones(len(b)) if weights is None else np.sqrt(weights)
        x, _, rank, sigma = np.linalg.lstsq(a * root[:, None], b * root, rcond=None)
        residual = (b - a @ x) * root
        self.assertEqual(int(row["n"]), len(b))
        self.assertEqual(int(row["rank"]), rank)
        np.testing.assert_allclose(numbers(row, names), x, rtol=1e-9, atol=1e-9)
        freedom = len(b) - rank
        inverse = np.linalg.inv((a * root[:, None]).T @ (a * root[:, None]))
        se = np.sqrt(np.diag(inverse) * (residual @ residual / freedom))
        np.testing.assert_allclose(numbers(row, [f"se_{name}" for name in names]), se, rtol=1e-8)
        mean = (root ** 2 @ b) / (root @ root) if "(intercept)" in names else 0
        total = root ** 2 @ (b - mean) ** 2
        self.assertAlmostEqual(float(row["r2"]), 1 - residual @ residual / total, places=9)
        np.testing.assert_allclose(float(row["condition"]), sigma[0] / sigma[-1], rtol=0.5)
        self.assertEqual(row["status"], "ok")

    def test_every_group_is_its_own_regression(self):
        keys, a, y = self.ragged()
        rows, done = self.solve("--intercept")
        names = ["(intercept)", "x0", "x1", "x2"]
        self.assertEqual(list(rows[0]), ["g", "n", *names, *[f"se_{n}" for n in names], *LAST])
        order = list(dict.fromkeys(keys))
        self.assertEqual([row["g"] for row in rows], [f"k{key}" for key in order])
        for key, row in zip(order, rows):
            chosen = a[keys == key]
            self.expect_row(row, np.column_stack([np.ones(len(chosen)), chosen]), y[keys == key],
                            names)
        self.assertIn("all 60 pass; wrote o.csv (60 rows)", done.stdout)
        rows, _ = self.solve()
        for key, row in zip(order, rows):
            self.expect_row(row, a[keys == key], y[keys == key], names[1:])

    def test_weights_and_rows_that_count_for_nothing(self):
        keys, a, y = self.ragged()
        w = self.random.uniform(0.1, 3, len(y))
        w[self.random.random(len(w)) < 0.1] = 0
        write("w.csv", table_of([[f"k{key}" for key in keys], *a.T, y, w],
                                ["g", "x0", "x1", "x2", "y", "w"]))
        rows, _ = self.solve("--weights", "w", "--intercept", table="w.csv")
        for row in rows:
            chosen = (keys == int(row["g"][1:])) & (w > 0)
            design = np.column_stack([np.ones(chosen.sum()), a[chosen]])
            self.expect_row(row, design, y[chosen], ["(intercept)", "x0", "x1", "x2"], w[chosen])

    def test_missing_rows_are_skipped_for_each_response(self):
        keys, a, y = self.ragged()
        z = a @ [3, 2, 1] + self.random.standard_normal(len(y))
        a[self.random.random(a.shape) < 0.03] = np.nan
        y[self.random.random(len(y)) < 0.1] = np.nan
        z[self.random.random(len(y)) < 0.1] = np.nan
        write("t.csv", table_of([[f"k{key}" for key in keys], *a.T, y, z],
                                ["g", "x0", "x1", "x2", "y", "z"]))
        rows, _ = self.solve("--missing", "skip", response="y,z")
        self.assertEqual([row["response"] for row in rows], ["y", "z"] * 60)
        for row in rows:
            b = {"y": y, "z": z}[row["response"]]
            chosen = (keys == int(row["g"][1:])) & ~np.isnan(a).any(1) & ~np.isnan(b)
            if chosen.sum() >= 4:
                self.expect_row(row, a[chosen], b[chosen], ["x0", "x1", "x2"])
        rows, done = self.solve("--columns", "x0,x1,x2,y", status=1)
        bad = {row["g"] for row in rows if row["status"] == "non_finite"}
        wanted = {f"k{key}" for key in keys[np.isnan(a).any(1) | np.isnan(y)]}
        self.assertEqual(bad, wanted)
        self.assertEqual(hint_of(done.stderr), "--missing skip leaves out the rows with NaN")

    def test_it_agrees_with_r(self):
        if shutil.which("Rscript") is None:
            self.skipTest("R is missing")
        keys, a, y = self.ragged(groups=40)
        w = self.random.uniform(0.1, 3, len(y)).round(3)
        write("t.csv", table_of([[f"k{key}" for key in keys], *a.T, y, w],
                                ["g", "x0", "x1", "x2", "y", "w"]))
        write("script.R", """
t <- read.csv("t.csv")
for (g in unique(t$g)) {
  s <- summary(lm(y ~ x0 + x1 + x2, weights = w, data = t[t$g == g, ]))
  cat(g, sprintf("%.17g", c(s$coefficients[, 1:2], s$r.squared)), "\n")
}
""")
        said = subprocess.run(["Rscript", "--vanilla", "script.R"], capture_output=True, text=True,
                              timeout=120, check=True).stdout
        rows, _ = self.solve("--intercept", "--weights", "w")
        names = ["(intercept)", "x0", "x1", "x2"]
        for row, line in zip(rows, said.splitlines(), strict=True):
            self.assertEqual(row["g"], line.split()[0])
            found = numbers(row, [*names, *[f"se_{name}" for name in names], "r2"])
            np.testing.assert_allclose(found, np.array(line.split()[1:], float), rtol=1e-10)

    def test_ridge(self):
        keys, a, y = self.ragged()
        rows, _ = self.solve("--ridge", "2.5")
        self.assertEqual(list(rows[0]), ["g", "n", "x0", "x1", "x2", *LAST])
        for row in rows:
            chosen = a[keys == int(row["g"][1:])]
            x = np.linalg.solve(chosen.T @ chosen + 2.5 * np.eye(3),
                                chosen.T @ y[keys == int(row["g"][1:])])
            np.testing.assert_allclose(numbers(row, ["x0", "x1", "x2"]), x, rtol=1e-9)

    def test_keys_are_text(self):
        keys = ["7", "007", "7.0", "NaN", "NA", "", " a", "a", "ä€", 'say "hi"', "a,b", "-", "x y",
                "#1", "50 %", "1e3", "TRUE", "a"]
        x = self.random.standard_normal((len(keys), 3))
        lines = [(key, row) for row in x.T for key in keys]
        text = table_of([[key for key, _ in lines], np.arange(len(lines)) % 7 + 1.0,
                         self.random.standard_normal(len(lines))], ["g", "x", "y"])
        # A program that writes text in quotes keeps its blanks.
        text = text.replace("\n a,", '\n" a",').replace("\n#1,", '\n"#1",')
        text = text.replace("\n50 %,", '\n"50 %",')
        write("t.csv", text)
        rows, done = self.solve()
        self.assertEqual([row["g"] for row in rows], list(dict.fromkeys(keys)))
        self.assertIn("1 group has an empty key", done.stdout)
        self.assertEqual([int(row["n"]) for row in rows], [6 if row["g"] == "a" else 3
                                                           for row in rows])
        # Blanks around a field without quotes are none of the key, and of no name.
        write("b.csv", "g , x,y\n  a b , 1,2\na b,2,3\n\"a b\",3,5\n")
        rows, _ = self.solve(table="b.csv")
        self.assertEqual([(row["g"], row["n"]) for row in rows], [("a b", "3")])

    def test_two_keys_and_their_order(self):
        count = 400
        one = [f"s{i}" for i in self.random.integers(0, 5, count)]
        two = [f"{i:02}" for i in self.random.integers(0, 7, count)]
        a = self.random.standard_normal((count, 2))
        y = self.random.standard_normal(count)
        write("t.csv", table_of([*a.T, one, y, two], ["u", "v", "site", "y", "day"]))
        rows, _ = self.solve(by="day,site")
        self.assertEqual(list(rows[0])[:5], ["day", "site", "n", "u", "v"])
        pairs = list(zip(two, one))
        self.assertEqual([(row["day"], row["site"]) for row in rows], list(dict.fromkeys(pairs)))
        for row in rows:
            chosen = [pair == (row["day"], row["site"]) for pair in pairs]
            if sum(chosen) > 2:
                self.expect_row(row, a[chosen], y[chosen], ["u", "v"])
        # "a", "bc" is another group than "ab", "c".
        write("p.csv", "k,l,x,y\na,bc,1,1\nab,c,1,2\na,bc,2,3\nab,c,2,5\n")
        self.assertEqual(len(self.solve(by="k,l", table="p.csv")[0]), 2)

    def test_columns_by_number_without_a_header(self):
        write("t.csv", "ann,1.5,2,b\nbob,2.5,3,b\nann,3,4.5,b\nbob,4.25,6,b\n")
        rows, _ = self.solve(by="1", response="2", table="t.csv", status=0, *["--columns", "2,3"])
        self.assertEqual(list(rows[0])[:3], ["column 1", "n", "column 3"])
        self.assertEqual([row["column 1"] for row in rows], ["ann", "bob"])
        # The index of pandas may be the key.
        write("i.csv", ",x,y\na,1,2\nb,2,3\na,3,5\nb,1,1\n")
        rows, _ = self.solve(by="1", response="y", table="i.csv")
        self.assertEqual([(row["column 1"], row["n"]) for row in rows], [("a", "2"), ("b", "2")])

    def special(self):
        """Among good groups one that is singular, one with two rows for three columns, and one with
        a constant response."""
        keys, a, y = self.ragged(groups=20)
        names = np.array([f"k{key}" for key in keys], object)
        one = self.random.standard_normal(12)
        extra = np.vstack([np.column_stack([one, 2 * one, 0 * one]),
                           self.random.standard_normal((2, 3)),
                           self.random.standard_normal((9, 3))])
        labels = ["singular"] * 12 + ["few"] * 2 + ["constant"] * 9
        b = np.concatenate([self.random.standard_normal(14), np.full(9, 0.1)])
        order = self.random.permutation(len(keys) + 23)
        a = np.vstack([a, extra])[order]
        y, names = np.concatenate([y, b])[order], np.concatenate([names, labels])[order]
        return names, a, y

    def test_groups_without_a_single_answer(self):
        names, a, y = self.special()
        terms = ["x0", "x1", "x2"]
        good = [name not in ("singular", "few") for name in names]
        write("t.csv", table_of([names[good], *a[good].T, y[good]], ["g", *terms, "y"]))
        alone = {row["g"]: row for row in self.solve("--intercept")[0]}
        write("t.csv", table_of([names, *a.T, y], ["g", *terms, "y"]))
        rows, done = self.solve("--intercept")
        found = {row["g"]: row for row in rows}
        self.assertEqual({key: found[key] for key in alone}, alone)
        self.assertIn("1 of 23 solutions with dependent columns (least rank 2): x is of least norm",
                      done.stdout)
        self.assertIn("1 of 23 solutions has too few rows for x, which is NaN (first: few); "
                      "--least-norm gives", done.stdout)
        self.assertIn("22 of 23 pass, 1 NaN: too few rows; wrote o.csv (23 rows)", done.stdout)
        few = found["few"]
        self.assertEqual((few["n"], few["status"], few["rank"]), ("2", "too_few_rows", "NaN"))
        self.assertTrue(np.isnan(numbers(few, ["(intercept)", *terms, "se_x0", "r2",
                                               "condition"])).all())
        self.assertEqual(found["constant"]["r2"], "NaN")
        self.assertEqual(found["constant"]["status"], "ok")
        singular = found["singular"]
        self.assertEqual((singular["status"], singular["rank"]), ("singular", "2"))
        for key, row in found.items():
            chosen = a[names == key]
            design = np.column_stack([np.ones(len(chosen)), chosen])
            if key != "few":
                x = np.linalg.lstsq(design, y[names == key], rcond=None)[0]
                np.testing.assert_allclose(numbers(row, ["(intercept)", *terms]), x, rtol=1e-8,
                                           atol=1e-9)
        rows, done = self.solve("--intercept", "--least-norm")
        self.assertIn("all 23 pass", done.stdout)
        row = next(row for row in rows if row["g"] == "few")
        design = np.column_stack([np.ones(2), a[names == "few"]])
        x = np.linalg.lstsq(design, y[names == "few"], rcond=None)[0]
        np.testing.assert_allclose(numbers(row, ["(intercept)", *terms]), x, rtol=1e-9)
        self.assertEqual((row["status"], row["rank"], row["se_x0"]), ("singular", "2", "NaN"))
        rows, _ = self.solve("--basic")
        row = next(row for row in rows if row["g"] == "singular")
        self.assertEqual(sum(numbers(row, terms) == 0), 2)

    def test_large_groups_among_small_ones(self):
        sizes = [3000, 5, 1100, 7, 60000, 2]
        keys = np.repeat(np.arange(len(sizes)), sizes)
        self.random.shuffle(keys)
        a = self.random.standard_normal((len(keys), 3))
        y = a @ [1, 2, 3] + self.random.standard_normal(len(keys))
        w = self.random.uniform(0.5, 2, len(keys))
        y[self.random.random(len(keys)) < 0.01] = np.nan
        write("t.csv", table_of([[f"k{key}" for key in keys], *a.T, y, w],
                                ["g", "x0", "x1", "x2", "y", "w"]))
        options = "--weights", "w", "--missing", "skip"
        rows, _ = self.solve(*options)
        for row in rows:
            chosen = (keys == int(row["g"][1:])) & ~np.isnan(y)
            if chosen.sum() > 3:
                self.expect_row(row, a[chosen], y[chosen], ["x0", "x1", "x2"], w[chosen])
        whole = pathlib.Path("o.csv").read_bytes()
        for more in (["--memory", "6MiB"], ["--threads", "1"], ["--threads", "3"],
                     ["--memory", "6MiB", "--scratch", "."]):
            self.solve(*options, *more)
            self.assertEqual(pathlib.Path("o.csv").read_bytes(), whole, more)
        self.assertEqual(sorted(os.listdir(".")), ["o.csv", "t.csv"])
        rows, _ = self.solve(*options, response="y,x0")
        self.assertEqual({int(row["n"]) for row in rows if row["response"] == "x0"}, set(sizes))

    def test_bits_depend_on_neither_memory_nor_threads_nor_neighbours(self):
        keys, a, y = self.ragged(groups=3000, most=90)
        self.solve("--intercept")
        whole = pathlib.Path("o.csv").read_bytes()
        for more in (["--memory", "2MiB"], ["--threads", "1"], ["--threads", "5"]):
            self.solve("--intercept", *more)
            self.assertEqual(pathlib.Path("o.csv").read_bytes(), whole, more)
        some = keys % 7 == 3
        write("t.csv", table_of([[f"k{key}" for key in keys[some]], *a[some].T, y[some]],
                                ["g", "x0", "x1", "x2", "y"]))
        lines = whole.splitlines()
        wanted = [line for line in lines[1:] if int(line.split(b",")[0][1:]) % 7 == 3]
        self.solve("--intercept")
        self.assertEqual(pathlib.Path("o.csv").read_bytes().splitlines()[1:], wanted)

    def test_a_pipe_and_standard_output(self):
        self.ragged()
        rows, _ = self.solve()
        text = pathlib.Path("t.csv").read_text(encoding="utf-8")
        done = run("solve", "-", "-", "--response", "y", "--by", "g", "--scratch", ".", input=text)
        self.assertEqual(rows_of(done.stdout), rows)
        self.assertIn("all 60 pass; wrote the table to standard output", done.stderr)
        self.assertEqual(sorted(os.listdir(".")), ["o.csv", "t.csv"])

    def peak(self, *args):
        """The most memory that a run has resident."""
        log = os.path.abspath("counts")
        env = dict(os.environ, LD_PRELOAD=COUNT_CALLS, QRTOOL_COUNT_LOG=log,
                   ASAN_OPTIONS="verify_asan_link_order=0")
        run(*args, env=env)
        with open(log, encoding="ascii") as file:
            return int(dict(line.split() for line in file)["peak_kib"]) << 10

    def test_memory_is_bounded(self):
        if self.peak("--version") > 64 * MIB:
            self.skipTest("a sanitizer keeps memory that was freed")
        count = 400000
        keys = self.random.integers(0, 20000, count)
        block = self.random.standard_normal((1000, 12)).round(4)
        with open("t.csv", "w", encoding="ascii") as file:
            print("g," + ",".join(f"x{j}" for j in range(11)) + ",y", file=file)
            lines = [",".join(map(str, row)) for row in block]
            for i, key in enumerate(keys):
                print(f"{key},{lines[i % 1000]}", file=file)
        for memory in (8, 16):
            peak = self.peak("solve", "t.csv", "o.csv", "-f", "-q", "--response", "y", "--by", "g",
                             "--threads", "2", "--memory", f"{memory}MiB")
            self.assertLess(peak / MIB, 1.1 * memory + (25 if memory < 16 else 20))
        small = pathlib.Path("o.csv").read_bytes()
        run("solve", "t.csv", "o.csv", "-f", "-q", "--response", "y", "--by", "g")
        self.assertEqual(pathlib.Path("o.csv").read_bytes(), small)
        said = run("solve", "t.csv", "o.csv", "-f", "--response", "y", "--by", "g", "--memory",
                   "1MiB", status=6).stderr
        self.assertIn("of memory; a quarter of the 1.0 MiB is theirs", said)
        size = hint_of(said).removeprefix("raise --memory to ")
        run("solve", "t.csv", "o.csv", "-f", "-q", "--response", "y", "--by", "g", "--memory", size)

    def test_a_kill_leaves_nothing(self):
        self.ragged(groups=20000)
        os.mkdir("scratch")
        for wait in (0.05, 0.2, 0.4):
            with subprocess.Popen([QRTOOL, "solve", "t.csv", "o.csv", "--response", "y", "--by",
                                   "g", "--memory", "4MiB", "--scratch", "scratch"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                time.sleep(wait)
                process.send_signal(signal.SIGTERM)
                process.communicate()
            if process.returncode != 0:
                self.assertEqual(sorted(os.listdir(".")), ["scratch", "t.csv"])
            self.assertEqual(os.listdir("scratch"), [])
            pathlib.Path("o.csv").unlink(missing_ok=True)

    def refused(self, message, *args, status=3, hint=None):
        said = run("solve", *args, status=status).stderr
        self.assertIn(message, said)
        if hint is not None:
            self.assertEqual(hint_of(said), hint)
        self.assertFalse(os.path.exists("o.csv"))

    def test_a_damaged_row(self):
        write("t.csv", "g,x,y\na,1,2\nb,2,oops\na,3,1\n")
        self.refused("t.csv:3:5: 'oops' is not a number", "t.csv", "o.csv", "--response", "y",
                     "--by", "g")
        write("t.csv", "g,x,y\na,1,2\nb,2\na,3,1\n")
        self.refused("t.csv:3:", "t.csv", "o.csv", "--response", "y", "--by", "g")
        write("t.csv", "g,x,y,w\na,1,2,1\nb,2,1,-1\na,3,1,1\n")
        self.refused("t.csv: weight 1 is -1", "t.csv", "o.csv", "--response", "y", "--by", "g",
                     "--weights", "w", hint="a weight of 0 leaves its row out")

    def test_wrong_columns(self):
        write("t.csv", "group,x,y\na,1,2\nb,2,3\na,3,1\n")
        self.refused("there is no column 'groop'; did you mean 'group'?", "t.csv", "o.csv",
                     "--response", "y", "--by", "groop", hint="the columns are group, x, y")
        self.refused("--response: group holds the keys", "t.csv", "o.csv", "--response", "group",
                     "--by", "group", hint="a column of --by is text; name another column")
        self.refused("there is no column nothing of weights", "t.csv", "o.csv", "--response", "y",
                     "--by", "group", "--weights", "nothing",
                     hint="with --by, --weights names a column of the table")
        self.refused("no column is left for A", "t.csv", "o.csv", "--response", "y", "--by",
                     "group,x", hint="--intercept adds a column of ones")
        write("t.csv", "group,rank,y\na,1,2\nb,2,3\na,3,1\n")
        self.refused("two columns of the output would have the name rank", "t.csv", "o.csv",
                     "--response", "y", "--by", "group",
                     hint="give the column rank of the table another name, or leave it out with "
                          "--columns")
        run("solve", "t.csv", "o.csv", "--response", "y", "--by", "group", "--columns", "y",
            "--intercept")

    def gaps(self, rows=300):
        """A table with gaps and weights of 0, in any order of its keys, and its numbers."""
        keys = self.random.choice(["a", "b b", "1", "01", "1.0"], rows)
        a, w = self.random.standard_normal((rows, 2)), self.random.random(rows)
        b = (a @ [2, -1] + 1 + 0.1 * self.random.standard_normal(rows))[:, None]
        b = np.hstack([b, b**2])
        b[self.random.random(b.shape) < 0.1] = np.nan
        a[self.random.random(rows) < 0.05, 0] = np.nan
        w[self.random.random(rows) < 0.1] = 0
        lines = [",".join("" if np.isnan(x) else repr(float(x)) for x in row)
                 for row in np.column_stack([a, b, w])]
        write("t.csv", "g,u,v,y,z,w\n" + "".join(
            f"{key},{line}\n" for key, line in zip(keys, lines)))
        return keys, np.column_stack([np.ones(rows), a]), b, w

    def expect_fits(self, keys, a, b, w, name, column):
        """The files of fits beside plain least squares for each group."""
        found = {kind: np.genfromtxt(f"o.{kind}.csv", delimiter=",", names=True)[f"{kind}_{name}"]
                 for kind in ("residuals", "fitted", "leverage")}
        b = b[:, column]
        for key in np.unique(keys):
            group = keys == key
            counts = group & ~np.isnan(a).any(1) & ~np.isnan(b) & (w > 0)
            root = np.sqrt(w[counts])
            q, r = np.linalg.qr(a[counts] * root[:, None])
            fitted = a @ np.linalg.solve(r, q.T @ (b[counts] * root))
            np.testing.assert_allclose(found["fitted"][group], fitted[group], atol=1e-11)
            np.testing.assert_allclose(found["residuals"][group], (b - fitted)[group], atol=1e-11)
            np.testing.assert_allclose(found["leverage"][counts], (q**2).sum(1), atol=1e-11)
            self.assertTrue(np.isnan(found["leverage"][group & ~counts & (w > 0)]).all())

    def test_rows_have_fits_in_the_order_of_the_table(self):
        keys, a, b, w = self.gaps()
        fits = ["--residuals", "--fitted", "--leverage"]
        options = ["--a", "u,v", "--intercept", "--missing", "skip", "--weights", "w", *fits]
        _, done = self.solve(*options, response="y,z")
        for column, name in enumerate("yz"):
            self.expect_fits(keys, a, b, w, name, column)
        self.assertIn("wrote o.csv, o.residuals.csv, o.fitted.csv, o.leverage.csv", done.stdout)
        with open("o.fitted.csv", encoding="utf-8") as file:
            self.assertEqual(file.readline(), "fitted_y,fitted_z\n")
        # In scratch files, from a pipe and on one thread the bytes are the same.
        whole = [pathlib.Path(f"o.{kind}.csv").read_bytes()
                 for kind in ("residuals", "fitted", "leverage")]
        table = pathlib.Path("t.csv").read_text(encoding="utf-8")
        self.solve(*options, "--threads", "1", response="y,z", table="-", input=table)
        self.assertEqual(whole, [pathlib.Path(f"o.{kind}.csv").read_bytes()
                                 for kind in ("residuals", "fitted", "leverage")])
        # Without the option, files of an earlier run go.
        self.solve(*options[:-3], response="y,z")
        self.assertEqual(sorted(os.listdir(".")), ["o.csv", "t.csv"])

    def test_large_groups_and_little_memory_have_the_same_fits(self):
        rows = 40000
        keys = np.where(self.random.random(rows) < 0.8, "big", "small")
        a = self.random.standard_normal((rows, 3))
        b = a.sum(1) + self.random.standard_normal(rows)
        write("t.csv", table_of([list(keys), *a.T, b], ["g", "u", "v", "w", "y"]))
        options = ["--residuals", "--fitted", "--leverage"]
        self.solve(*options)
        whole = [pathlib.Path(f"o.{kind[2:]}.csv").read_bytes() for kind in options]
        for name in np.unique(keys):
            group = keys == name
            q, _ = np.linalg.qr(a[group])
            found = np.genfromtxt("o.leverage.csv", skip_header=1)[group]
            np.testing.assert_allclose(found, (q**2).sum(1), atol=1e-12)
        self.solve(*options, "--memory", "8MiB", "--scratch", ".")
        self.assertEqual(whole, [pathlib.Path(f"o.{kind[2:]}.csv").read_bytes()
                                 for kind in options])

    def test_a_full_disk_and_a_kill_leave_nothing_of_the_fits(self):
        self.ragged(groups=400)
        command = [QRTOOL, "solve", "t.csv", "o.csv", "--response", "y", "--by", "g", "--residuals",
                   "--fitted", "--leverage"]
        done = subprocess.run(command, check=False, capture_output=True, text=True,
                              preexec_fn=limited(100000))
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(os.listdir("."), ["t.csv"])
        # In a pipe that does not end, the tool has read rows when it is killed.
        with subprocess.Popen([*command[:2], "-", *command[3:]], stdin=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as tool:
            tool.stdin.write(pathlib.Path("t.csv").read_bytes()[:20000])
            tool.stdin.flush()
            time.sleep(0.3)
            tool.send_signal(signal.SIGTERM)
        self.assertNotEqual(tool.returncode, 0)
        self.assertEqual(os.listdir("."), ["t.csv"])

    def test_the_fits_keep_within_the_memory(self):
        rows = 400000
        numbers = self.random.standard_normal((rows, 3))
        keys = self.random.integers(5000, size=rows)
        write("t.csv", "g,u,v,y\n" + "".join(
            f"k{key},{row[0]:.6g},{row[1]:.6g},{row[2]:.6g}\n"
            for key, row in zip(keys.tolist(), numbers.tolist())))
        command = [QRTOOL, "solve", "t.csv", "o.csv", "--response", "y", "--by", "g", "--fitted",
                   "--residuals", "--memory", "16MiB", "--scratch", "."]
        most = 0
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as tool:
            while tool.poll() is None:
                status = pathlib.Path(f"/proc/{tool.pid}/status").read_text(encoding="utf-8")
                found = [line.split()[1] for line in status.splitlines() if "VmHWM" in line]
                most = max([most, *map(int, found)]) if "qrtool" in status else most
                time.sleep(0.01)
        self.assertEqual(tool.returncode, 0)
        self.assertGreater(most, 0)
        self.assertLess(most / 1024, 1.1 * 16 + 20)

    def test_a_dry_run_counts_the_fits(self):
        self.ragged()
        command = ("solve", "t.csv", "o.csv", "--response", "y", "--by", "g", "--dry-run", "--json")
        plain = json.loads(run(*command).stdout)["runs"][0]
        more = json.loads(run(*command, "--fitted", "--residuals").stdout)["runs"][0]
        self.solve("--fitted", "--residuals")
        written = sum(os.path.getsize(f"o{each}.csv") for each in ("", ".fitted", ".residuals"))
        self.assertLess(written / more["output_bytes"], 1.5)
        self.assertGreater(written / more["output_bytes"], 0.6)
        self.assertGreater(more["output_bytes"], plain["output_bytes"])

    def test_a_file_of_fits_is_kept(self):
        self.ragged(groups=3)
        write("o.fitted.csv", "mine")
        said = run("solve", "t.csv", "o.csv", "--response", "y", "--by", "g", "--fitted",
                   status=5).stderr
        self.assertIn("'o.fitted.csv' exists", said)
        self.assertFalse(os.path.exists("o.csv"))
        run("solve", "t.csv", "-", "--response", "y", "--by", "g", "--fitted", status=2)

    def test_keys_that_are_one_number_are_said(self):
        write("t.csv", "g,x,y\n1,1,2\n1.0,2,4\n01,3,7\n1,2,3\n1.0,3,1\n01,4,1\n")
        lines, done = self.solve()
        self.assertEqual([line["g"] for line in lines], ["1", "1.0", "01"])
        self.assertRegex(done.stderr, "the keys '.*1.*' and '.*1.*' are one number and two groups")
        self.assertNotIn("one number", self.solve(by="x")[1].stderr)

    def test_what_contradicts_groups(self):
        self.ragged(groups=3)
        table = "t.csv", "o.csv", "--response", "y", "--by", "g"
        for options in (["--covariance"], ["--confidence", "0.9"], ["--precision", "single"],
                        ["--rows", "first"], ["--order", "column"], ["--raw-values"],
                        ["--backend", "opencl"], ["--device", "0"], ["--variant", "cpu/tall"]):
            self.refused(f"--by contradicts {options[0]}", *table, *options, status=2,
                         hint="leave one of them away")
        self.refused("--by contradicts --into", "t.csv", "--into", "d", "--response", "y", "--by",
                     "g", status=2)
        self.refused("--by contradicts --format npy", "t.csv", "-", "--format", "npy",
                     "--response", "y", "--by", "g", status=2)
        self.refused("--by is for a table, with --response", "t.csv", "u.csv", "o.csv", "--by", "g",
                     status=2, hint="qrtool solve TABLE OUT.csv --response LIST --by COLUMN; A and "
                     "B in other files have --groups FILE:/path")
        self.refused("--scratch is for --by, --groups and --window", "t.csv", "o.csv", "--response",
                     "y", "--scratch", ".", status=2, hint="leave it away")
        self.refused("--by writes a table as text, which 'o.h5' is not", "t.csv", "o.h5",
                     "--response", "y", "--by", "g", status=2,
                     hint="let the name end in .csv, .tsv or .txt, or give - for standard output")
        self.refused("--by reads a whole table, not a part of it", "t.csv:[0:9]", *table[1:],
                     status=2, hint="name the file alone; --columns chooses columns")
        np.save("t.npy", np.zeros((4, 3)))
        self.refused("--response is for tables in CSV", "t.npy", *table[1:])

    def test_an_output_is_kept_without_force(self):
        self.ragged(groups=3)
        run("solve", "t.csv", "o.csv", "--response", "x0", "--columns", "x0,x1,y")
        self.assertIn("o.report.json", os.listdir("."))
        run("solve", "t.csv", "o.csv", "--response", "y", "--by", "g", status=5)
        run("solve", "t.csv", "o.csv", "--response", "y", "--by", "g", "--force")
        self.assertEqual(sorted(os.listdir(".")), ["o.csv", "t.csv"])

    def test_integer_keys_keep_their_digits(self):
        keys = [2**60 + i // 4 for i in range(12)]
        np.save("a.npy", self.random.normal(size=(12, 2)))
        np.save("b.npy", self.random.normal(size=12))
        np.save("g.npy", np.array(keys, np.int64))
        np.save("u.npy", np.array([key + 2**63 for key in keys], np.uint64))
        np.save("s.npy", np.array([-key for key in keys], ">i8"))
        pathlib.Path("g.csv").write_text("".join(f"{key}\n" for key in keys), encoding="utf-8")
        with h5py.File("g.h5", "w") as file:
            file["day"] = np.array(keys)
        for name, shift, sign in (("g.npy", 0, 1), ("u.npy", 2**63, 1), ("s.npy", 0, -1),
                                  ("g.csv", 0, 1), ("g.h5:/day", 0, 1)):
            run("solve", "a.npy", "b.npy", "o.csv", "-f", "--groups", name)
            with open("o.csv", encoding="utf-8") as file:
                found = [next(iter(line.values())) for line in csv.DictReader(file)]
            self.assertEqual(found, [str(sign * key + shift) for key in dict.fromkeys(keys)])

    def test_arrays_and_the_groups_of_their_rows(self):
        keys, a, y = self.ragged(groups=30)
        b = np.column_stack([y, y ** 2])
        w = self.random.uniform(0.5, 2, len(y))
        with h5py.File("d.h5", "w") as file:
            file["A"], file["b"], file["both"], file["w"] = a, y, b, w
            file["day"] = keys + 20260100
            file["half"] = keys + 0.5
            file["rank"] = keys
            file["text"] = ["x"] * len(y)
            file["three"] = np.zeros((3, 4, 2))
        names = ["x1", "x2", "x3"]

        def solve(*options, b="b", group="day", **more):
            done = run("solve", "d.h5:/A", f"d.h5:/{b}", "o.csv", "-f", "--groups",
                       f"d.h5:/{group}", *options, **more)
            return rows_of(pathlib.Path("o.csv").read_text(encoding="utf-8")), done

        rows, done = solve()
        self.assertEqual(list(rows[0]), ["day", "n", *names, *[f"se_{n}" for n in names], *LAST])
        self.assertEqual([int(row["day"]) - 20260100 for row in rows], list(dict.fromkeys(keys)))
        for row in rows:
            chosen = keys == int(row["day"]) - 20260100
            self.expect_row(row, a[chosen], y[chosen], names)
        self.assertIn("all 30 pass; wrote o.csv (30 rows)", done.stdout)
        table = [list(row.values())[1:] for row in self.solve()[0]]
        self.assertEqual([list(row.values())[1:] for row in rows], table)
        rows, _ = solve("--weights", "d.h5:/w", b="both", group="half", *["--memory", "2MiB"])
        self.assertEqual([row["response"] for row in rows], ["b1", "b2"] * 30)
        for row in rows:
            chosen = keys == float(row["half"]) - 0.5
            self.expect_row(row, a[chosen], b[chosen, int(row["response"][1]) - 1], names,
                            w[chosen])
        self.assertEqual(list(solve(group="rank")[0][0])[0], "group")
        np.save("a.npy", a)
        np.save("b.npy", b.T)
        np.save("g.npy", keys)
        run("solve", "a.npy", "b.npy", "p.csv", "--groups", "g.npy", "--weights", "d.h5:/w")
        found = rows_of(pathlib.Path("p.csv").read_text(encoding="utf-8"))
        self.assertEqual([list(row.values())[1:] for row in found],
                         [list(row.values())[1:] for row in rows])
        self.assertEqual(list(found[0])[0], "group")
        os.remove("o.csv")
        files = "d.h5:/A", "d.h5:/b", "o.csv", "--groups"
        self.refused("24 groups do not fit the", *files, "d.h5:/three",
                     hint="give one number for each row of A")
        self.refused("d.h5", *files, "d.h5:/text")
        self.refused("--groups contradicts --covariance", *files, "d.h5:/day", "--covariance",
                     status=2, hint="leave one of them away")
        self.refused("--groups is for A and B in files; a table has --by", "t.csv", "o.csv",
                     "--response", "y", "--groups", "d.h5:/day", status=2,
                     hint="--by COLUMN is one regression for each group of a table")
        self.refused("--by is for a table, and --groups for A and B", "t.csv", "o.csv",
                     "--response", "y", "--groups", "d.h5:/day", "--by", "g", status=2)
        self.refused("--groups divides the rows of one A, and this is 3x4x2", "d.h5:/three",
                     "d.h5:/three", "o.csv", "--groups", "d.h5:/day")

    def test_json_and_dry_run(self):
        self.ragged(groups=12)
        _, done = self.solve("--json")
        said = json.loads(done.stdout)
        self.assertEqual((said["schema"], said["groups"], said["check"]["passed"], said["keys"]),
                         ("qrtool.solve-by/1", 12, 12, ["g"]))
        os.remove("o.csv")
        done = run("solve", "t.csv", "o.csv", "--response", "y", "--by", "g", "--dry-run")
        self.assertRegex(done.stdout, r"problem +12 groups of \d+ to \d+ rows, 3 columns, float64")
        self.assertEqual(os.listdir("."), ["t.csv"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
