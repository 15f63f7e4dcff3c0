#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures: info --plot, bench --plot, bench --export-html and the picture of BENCHMARKS.md. What
gnuplot draws is left out where there is no gnuplot, and what a browser shows where there is no
Chromium."""
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import h5py
import numpy as np

QRTOOL = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
GNUPLOT = shutil.which("gnuplot")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
                None)
BENCH = ("bench", "--shape", "8x4,16x4", "--batch", "3", "--backend", "cpu", "--against", "eigen")


def run(*args, status=0, path=None):
    environment = dict(os.environ, PATH=path) if path is not None else None
    done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, timeout=120, check=False,
                          env=environment)
    assert done.returncode == status, (args, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def texts_of_svg(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    assert root.tag.endswith("}svg"), root.tag
    return " ".join("".join(each.itertext()) for each in root.iter() if each.tag.endswith("}text"))


class Page(html.parser.HTMLParser):
    """Counts elements, and finds what a page would load."""

    def __init__(self, text):
        super().__init__()
        self.counts, self.loaded = {}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in attributes:
            if name in ("src", "href", "xlink:href") and not value.startswith("#"):
                self.loaded.append(value)


class Plot(unittest.TestCase):
    def setUp(self):
        self.before, self.folder = os.getcwd(), tempfile.mkdtemp(prefix="qrtool-plot-")
        os.chdir(self.folder)
        os.mkdir("empty")
        with h5py.File("a.h5", "w") as file:
            file["A"] = np.random.default_rng(6).standard_normal((50, 9, 4))
        run("factor", "a.h5", "q.h5")

    def tearDown(self):
        os.chdir(self.before)
        shutil.rmtree(self.folder)

    @unittest.skipUnless(GNUPLOT, "no gnuplot")
    def test_errors_of_an_output(self):
        self.assertIn("drew e.svg", run("info", "q.h5", "--plot", "e.svg"))
        texts = texts_of_svg("e.svg")
        for word in ("q.h5", "residual over its bar", "orthogonality over its bar", "matrices"):
            self.assertIn(word, texts)
        run("q.h5", "--plot", "e.png", "-q")
        self.assertEqual(pathlib.Path("e.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertIn("exists", run("info", "q.h5", "--plot", "e.svg", status=5))
        run("info", "q.h5", "--plot", "e.svg", "--force")
        self.assertIn("none with a bar", run("info", "a.h5", "--plot", "none.svg", status=3))
        self.assertFalse(os.path.exists("none.svg"))
        run("solve", "a.h5", "a.h5:/A[:, :, 0:1]", "x.h5")
        run("info", "x.h5", "--plot", "x.svg")
        self.assertIn("backward_error over its bar", texts_of_svg("x.svg"))

    @unittest.skipUnless(GNUPLOT, "no gnuplot")
    def test_names_are_no_commands_of_gnuplot(self):
        name = "q'; set output 'owned'; '.h5"
        os.rename("q.h5", name)
        run("info", name, "--plot", "e.svg")
        self.assertIn(name, texts_of_svg("e.svg"))
        self.assertFalse(os.path.exists("owned"))

    @unittest.skipUnless(GNUPLOT, "no gnuplot")
    def test_times_and_speed_ups(self):
        run(*BENCH, "--plot", "t.svg")
        texts = texts_of_svg("t.svg")
        for word in ("3 of 8x4", "3 of 16x4", "qrtool", "eigen / qrtool", "times as fast",
                     "data moved once"):
            self.assertIn(word, texts)
        run(*BENCH[:-1], "none", "--plot", "t.png", "-q")
        self.assertEqual(pathlib.Path("t.png").read_bytes()[:4], b"\x89PNG")
        self.assertIn("exists", run(*BENCH, "--plot", "t.svg", status=5))

    def test_without_gnuplot(self):
        nowhere = os.path.abspath("empty")
        said = run("info", "q.h5", "--plot", "e.svg", status=5, path=nowhere)
        self.assertIn("gnuplot is not installed", said)
        self.assertIn("apt install gnuplot-nox", said)
        said = run(*BENCH, "--plot", "t.svg", status=5, path=nowhere)
        self.assertNotIn("8x4", said)  # nothing is measured first
        self.assertIn("has no picture", run(*BENCH, "--export-html", "t.html", path=nowhere))
        page = Page(pathlib.Path("t.html").read_text(encoding="utf-8"))
        self.assertEqual((page.counts["table"], page.counts.get("svg", 0)), (1, 0))

    def test_a_gnuplot_that_fails(self):
        for script, cause in (("echo 'no such terminal' >&2; exit 1", "no such terminal"),
                              ("cat > /dev/null", "without a picture"),
                              ("kill -9 $$", "without a picture")):
            pathlib.Path("empty/gnuplot").write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
            os.chmod("empty/gnuplot", 0o755)
            path = os.path.abspath("empty") + ":/usr/bin:/bin"
            self.assertIn(cause, run("info", "q.h5", "--plot", "e.svg", status=5, path=path))
            self.assertFalse(os.path.exists("e.svg"))

    def test_names_of_pictures(self):
        for name in ("e.pdf", "e", "-"):
            run("info", "q.h5", "--plot", name, status=2)
            run(*BENCH, "--plot", name, status=2)
        run(*BENCH, "--plot", "t.svg", "--export-html", "t.svg", status=2)
        run("bench", "--gemm", "--plot", "t.svg", status=2)

    def test_a_page_of_its_own(self):
        run(*BENCH, "--export-html", "t.html")
        text = pathlib.Path("t.html").read_text(encoding="utf-8")
        page = Page(text)
        self.assertEqual(page.loaded, [])
        self.assertEqual((page.counts["table"], page.counts["tr"]), (1, 3))
        self.assertEqual(page.counts.get("svg", 0), 1 if GNUPLOT else 0)
        self.assertNotIn("url(http", text)
        self.assertIn("<dt>host</dt>", text)
        self.assertIn("exists", run(*BENCH, "--export-html", "t.html", status=5))

    @unittest.skipUnless(CHROMIUM, "no Chromium")
    def test_the_page_in_a_browser(self):
        run(*BENCH, "--export-html", "t.html")
        page = pathlib.Path("t.html").resolve().as_uri()
        browser = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
                   "--user-data-dir=" + self.folder + "/user"]
        shown = subprocess.run([*browser, "--dump-dom", page], capture_output=True, text=True,
                               timeout=120, check=True)
        self.assertEqual(len(re.findall("<tr>", shown.stdout)), 3)
        self.assertIn("<h1>qrtool bench</h1>", shown.stdout)
        subprocess.run([*browser, "--screenshot=" + self.folder + "/t.png",
                        "--window-size=1200,1600", page],
                       capture_output=True, timeout=120, check=True)
        subprocess.run([*browser, "--screenshot=" + self.folder + "/blank.png",
                        "--window-size=1200,1600",
                        "about:blank"], capture_output=True, timeout=120, check=True)
        self.assertGreater(os.path.getsize("t.png"), 3 * os.path.getsize("blank.png"))

    @unittest.skipUnless(GNUPLOT, "no gnuplot")
    def test_the_picture_of_the_benchmarks(self):
        with open("b.svg", "w", encoding="utf-8") as picture:
            subprocess.run([GNUPLOT, "samples/benchmarks.gp"], cwd=ROOT, stdout=picture, check=True)
        works = re.findall(r'^"([^"]*)"\t', (ROOT / "samples/benchmarks.gp").read_text(), re.M)
        self.assertGreater(len(works), 5)
        drawn = texts_of_svg("b.svg")
        for work in works:
            self.assertIn(work, drawn)
        for name in ("README.md", "BENCHMARKS.md"):
            self.assertIn("](samples/benchmarks.svg)", (ROOT / name).read_text())
        texts_of_svg(ROOT / "samples/benchmarks.svg")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
