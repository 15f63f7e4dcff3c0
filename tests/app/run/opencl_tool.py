# SPDX-License-Identifier: Apache-2.0
"""opencl_tool.py: what tests of runs on an OpenCL device share. Their programs get the tool
and the layer that lets calls fail as their first arguments."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

QRTOOL, LAYER = sys.argv[1:3]


class OpenclTool(unittest.TestCase):
    # A matrix that the host does not measure again goes in pieces, of 64 KiB in these tests.
    PIECES = {"QRTOOL_PRETEND": "piece=65536"}

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="qrtool-opencl-")
        self.a = os.path.join(self.folder, "a.h5")
        self.q = os.path.join(self.folder, "q.h5")
        self.run_tool("generate", "--shape", "50x20x12", self.a, "-q")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_tool(self, *args, env=None, expect=(0,)):
        done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, timeout=120,
                              check=False,
                              env=dict(os.environ, **(env or {})))
        self.assertIn(done.returncode, expect, (args, env, done.stdout, done.stderr))
        return done

    def write(self, name, **datasets):
        import h5py

        path = os.path.join(self.folder, name)
        with h5py.File(path, "w") as file:
            for key, value in datasets.items():
                file[key] = value
        return path

    def layer(self, **settings):
        return {"OPENCL_LAYERS": LAYER, **settings}
