#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of times by which a plan chooses: bench --rates writes them, and a device's own table is
obeyed, recorded in the output and forgotten."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

QRTOOL = os.path.abspath(sys.argv[1])
HEAD = "variant,type,q,m,n,matrices:microseconds"


class Rates(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory(prefix="qrtool-rates-")
        self.addCleanup(self.place.cleanup)
        self.env = dict(os.environ, XDG_CACHE_HOME=self.at("cache"))
        self.env.pop("QRTOOL_TIMINGS", None)

    def at(self, name):
        return os.path.join(self.place.name, name)

    def run_tool(self, *args, status=0):
        done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, timeout=300,
                              check=False, env=self.env)
        self.assertEqual(done.returncode, status, (args, done.stdout, done.stderr))
        return done

    def rates(self, *more, status=0):
        return self.run_tool("bench", "--rates", self.at("r.csv"), "--backend", "cpu", "--shape",
                             "3x2", *more, status=status)

    def text(self):
        with open(self.at("r.csv"), encoding="utf-8") as file:
            return file.read()

    def test_a_table_is_written_gone_on_with_and_replaced(self):
        self.rates()
        first = self.text()
        self.assertTrue(first.startswith("# qrtool.rates/1 "), first[:80])
        self.assertRegex(first, r"(?m)^=cpu/batched,float32,1,3,2,1:")
        self.assertRegex(first, r"(?m)^=cpu/eigen,float64,0,3,2,1:")
        self.assertRegex(first, r"(?m)^=cpu/complex,complex64,1,3,2,1:")
        self.rates()
        self.assertEqual(self.text(), first, "what is there is not measured again")
        with open(self.at("r.csv"), "w", encoding="utf-8") as file:
            file.write(re.sub(r"(?m)^=cpu/batched.*\n", "", first))
        self.rates()
        self.assertIn("cpu/batched", self.text())
        self.rates("--force")
        self.assertEqual(self.text().count("\n"), first.count("\n"))

    def test_one_variant_is_measured_alone(self):
        self.rates("--variant", "cpu/batched")
        self.assertEqual(set(re.findall(r"(?m)^=(\S+?),", self.text())), {"cpu/batched"})
        self.rates()
        self.assertIn("=cpu/eigen,", self.text())
        error = self.rates("--variant", "cpu/none", status=2).stderr
        self.assertIn("--variant", error)

    def test_what_is_no_table_of_this_device_is_kept(self):
        for content, words in (("hello\n", "is no table of rates"),
                               (f"# qrtool.rates/1 another\n{HEAD}\n", "has the rates of another"),
                               (f"# qrtool.rates/1 x\n{HEAD}\ncpu/x,float32,1,1\n", "line 3")):
            with open(self.at("r.csv"), "w", encoding="utf-8") as file:
                file.write(content)
            error = self.rates(status=2 if "another" in content else 3).stderr
            self.assertIn(words, error)
            self.assertIn("hint:", error)
            self.assertEqual(self.text(), content)

    def test_mistakes_are_named(self):
        error = self.run_tool("bench", "--rates", "--backend", "cpu", status=2).stderr
        self.assertIn("the CPU has one table for all", error)
        self.assertIn("--rates FILE", error)
        if "--opencl" in sys.argv:
            error = self.run_tool("bench", "--rates", "--backend", "opencl", "--shape", "3x2",
                                  status=2).stderr
            self.assertIn("your own table has all shapes and variants", error)
        self.assertIn("--rates measures all variants",
                      self.rates("--batch", "3", status=2).stderr)

    def factored(self):
        done = self.run_tool("factor", "--backend", "opencl", "--explain", "--json", "-f",
                             self.at("a.npy"), self.at("out.h5"))
        answer = json.loads(done.stdout)
        attributes = self.run_tool("info", self.at("out.h5"), "--json").stdout
        return answer["backend"], re.search(r'"rates": ?"([0-9a-f]{16})"', attributes)

    def test_a_device_has_a_table_of_its_own(self):
        if "--opencl" not in sys.argv:
            self.skipTest("no OpenCL device")
        self.run_tool("generate", "--shape", "3x12x5", self.at("a.npy"))
        usual, usual_rates = self.factored()
        self.assertNotEqual(usual["variant"], "opencl/large")
        name = re.sub(r"[^A-Za-z0-9.-]", "_", usual["device"])
        own = self.at(f"cache/qrtool/timings.{name}.rates.csv")
        os.makedirs(os.path.dirname(own), exist_ok=True)
        with open(own, "w", encoding="utf-8") as file:
            file.write(f"# qrtool.rates/1 {usual['device']}\n{HEAD}\n"
                       "opencl/large,float64,1,12,5,1:1\nopencl/large,float32,1,12,5,1:1\n")
        other, other_rates = self.factored()
        self.assertEqual(other["variant"], "opencl/large")
        self.assertTrue(usual_rates and other_rates)
        self.assertNotEqual(usual_rates.group(1), other_rates.group(1))
        self.run_tool("devices", "--forget")
        self.assertFalse(os.path.exists(own))
        self.assertEqual(self.factored()[0]["variant"], usual["variant"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
