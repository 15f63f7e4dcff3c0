# SPDX-License-Identifier: Apache-2.0
"""tool.py: what the tests of the program share. The first argument of a test is the program."""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import unittest

QRTOOL = os.path.abspath(sys.argv[1])

FOLLOWED = set()  # the hints that a test has followed to the end


def peak_kib(*args):
    """The most memory, in KiB, that a run has resident."""
    script = ("import resource, subprocess, sys; "
              "subprocess.run(sys.argv[1:], check=True, capture_output=True); "
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    return int(subprocess.run([sys.executable, "-c", script, QRTOOL, *args], check=True,
                              timeout=300, capture_output=True, text=True).stdout)


def limited(most_bytes):
    """For preexec_fn: the process may not write a file that is larger, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))


def kill_runs(look, *args):
    """Runs the program again and again, kills each run after a longer time until one ends by
    itself, and calls look() after each. Returns how many were killed."""
    for killed in range(40):
        with subprocess.Popen([QRTOOL, *args], stdout=subprocess.DEVNULL) as process:
            try:
                process.wait(0.01 * 1.2**killed)
            except subprocess.TimeoutExpired:
                process.kill()
        look()
        if process.returncode == 0:
            return killed
    raise AssertionError(args)


def run(*args, status=0, **options):
    """Runs the program, which must end with `status`; `options` are those of subprocess.run."""
    options = {"capture_output": True, "text": True, "timeout": 300, **options}
    done = subprocess.run([QRTOOL, *args], check=False, **options)
    assert done.returncode == status, (args, done.returncode, done.stdout, done.stderr)
    return done


def said(*args, **options):
    """Returns what a run prints, and then its messages."""
    done = run(*args, **options)
    return done.stdout + done.stderr


def hint_of(said):
    """The hint among messages; empty where there is none."""
    found = re.search(r"^hint: (.*)$", said, re.MULTILINE)
    return found.group(1) if found else ""


def has_device():
    """Whether there is an OpenCL device; `devices` ends with 0 without one, too."""
    return len(json.loads(run("devices", "--json").stdout)["places"]) > 1


class FolderTest(unittest.TestCase):
    """Every test runs in a folder of its own, which is empty at first."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="qrtool-test-")
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
