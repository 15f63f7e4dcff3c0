#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What devices took is kept in the user's cache folder, shown, forgotten, and never in the way."""
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import unittest

QRTOOL = os.path.abspath(sys.argv[1])


def environment(**changes):
    result = {k: v for k, v in os.environ.items() if k not in ("QRTOOL_TIMINGS", "XDG_CACHE_HOME")}
    result.update(changes)
    return result


def run(*args, env, status=0):
    done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, timeout=300, check=False,
                          env=env)
    assert done.returncode == status, (args, done.returncode, done.stdout, done.stderr)
    return done


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Timings(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory(prefix="qrtool-timings-")
        self.folder = self.place.name
        self.cache = os.path.join(self.folder, "cache")
        self.file = os.path.join(self.cache, "qrtool", "timings.json")
        self.env = environment(XDG_CACHE_HOME=self.cache)
        run("generate", "--shape", "20x12x5", self.at("a.h5"), env=self.env)

    def tearDown(self):
        self.place.cleanup()

    def at(self, name):
        return os.path.join(self.folder, name)

    def factor(self, *args, env=None):
        run("factor", self.at("a.h5"), self.at("q.h5"), "-f", *args, env=env or self.env)
        return digest(self.at("q.h5"))

    def kept(self):
        return json.loads(run("devices", "--timings", "--json", env=self.env).stdout)

    def has_device(self):
        return len(json.loads(run("devices", "--json", env=self.env).stdout)["places"]) > 1

    def test_a_run_on_a_device_is_kept(self):
        if not self.has_device():
            self.skipTest("no OpenCL device")
        self.factor("--backend", "cpu")
        self.assertFalse(os.path.exists(self.file))
        self.factor("--device", "0")
        first = self.kept()
        self.assertEqual(first["file"], self.file)
        self.assertEqual(len(first["devices"]), 1)
        device = first["devices"][0]
        self.assertGreater(device["start_seconds"], 0)
        self.assertGreaterEqual(len(device["programs"]), 3)
        self.factor("--device", "0")
        again = self.kept()["devices"][0]["programs"]
        self.assertEqual([p["id"] for p in again], [p["id"] for p in device["programs"]])
        self.assertTrue(all("least_seconds" in p for p in again))
        text = run("devices", "--timings", env=self.env).stdout
        self.assertIn("start", text)
        self.assertIn("again", text)
        self.assertIn(self.file, text)

    def test_they_are_forgotten(self):
        self.assertIn("no times were kept", run("devices", "--forget", env=self.env).stdout)
        os.makedirs(os.path.dirname(self.file))
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("x")
        self.assertIn("removed", run("devices", "--forget", env=self.env).stdout)
        self.assertFalse(os.path.exists(self.file))
        answer = json.loads(run("devices", "--forget", "--json", env=self.env).stdout)
        self.assertFalse(answer["forgot"])
        run("devices", "--forget", "--timings", env=self.env, status=2)

    def test_nothing_is_kept_where_that_is_not_wanted(self):
        env = environment(XDG_CACHE_HOME=self.cache, QRTOOL_TIMINGS="")
        self.factor(*(["--device", "0"] if self.has_device() else []), env=env)
        self.assertFalse(os.path.exists(self.file))
        self.assertIn("no times are kept", run("devices", "--timings", env=env).stdout)

    def test_a_damaged_file_is_no_obstacle(self):
        good = self.factor()
        os.makedirs(os.path.dirname(self.file))
        for text in ("", "{", "[1, 2]", '{"schema": "qrtool.timings/1"}', "\0" * 5000,
                     '{"schema": "qrtool.timings/1", "devices": [{"name": 3}]}', "[" * 100000):
            with open(self.file, "w", encoding="utf-8") as file:
                file.write(text)
            self.assertEqual(self.factor(), good)
            self.assertEqual(self.kept()["devices"], [])
        if self.has_device():
            self.factor("--device", "0")
            self.assertEqual(len(self.kept()["devices"]), 1)

    def test_a_place_that_cannot_be_written_is_no_obstacle(self):
        good = self.factor()
        device = ["--device", "0"] if self.has_device() else []
        on_device = self.factor(*device)
        with open(self.at("plain"), "w", encoding="utf-8"):
            pass
        for place in (self.at("plain/cache/t.json"), "/proc/qrtool/t.json", self.folder,
                      "/dev/null", "/dev/full"):
            env = environment(QRTOOL_TIMINGS=place)
            self.assertEqual(self.factor(env=env), good, place)
            self.assertEqual(self.factor(*device, env=env), on_device, place)
            run("devices", "--timings", env=env)
        left = [name for _, _, names in os.walk(self.folder) for name in names
                if name.endswith(".tmp")]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
