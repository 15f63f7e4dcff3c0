#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every hint leads on: the cases of all files that follow hints, and then a look at the sources,
whether they have a hint that no case has followed. Arguments: the program, the root of the
sources, and those of shell_hints_test."""
import os
import pathlib
import re
import sys
import unittest

import hint_sources
from tool import FOLLOWED
from append_hints_test import AppendHints
from apply_hints_test import ApplyHints
from file_hints_test import FileHints
from hints_test import Hints
from messages_test import Messages
from shell_hints_test import ShellHints, is_there

CASES = (AppendHints, ApplyHints, Hints, FileHints, Messages, ShellHints)

# Hints that cannot be followed here, each with the reason.
NO_OPENCL = "only a program that was built without OpenCL says so"
TWO_DEVICES = "ranks of one machine have the same devices"
EXEMPT = {
    "--backend cpu works everywhere": NO_OPENCL,
    "products are measured on a device": NO_OPENCL,
    "give every rank a device; or --backend cpu": TWO_DEVICES,
    "give every rank an equal device; or --backend cpu": TWO_DEVICES,
    "a part of a GPU (MIG) is none; else install NVIDIA's OpenCL driver (libnvidia-opencl.so.1)":
        "only where CUDA lists a GPU that OpenCL does not",
    "raise --memory": "the second try has no memory only where a device has taken it meanwhile",
}
if os.geteuid() != 0:
    EXEMPT["choose another name"] = "only root can make a link of another user"


class EveryHint(unittest.TestCase):
    """Runs after the cases."""

    @classmethod
    def setUpClass(cls):
        cls.texts, cls.unnamed = hint_sources.hints(pathlib.Path(sys.argv[2]))

    def test_a_hint_is_text_or_named_so(self):
        self.assertEqual(self.unnamed, [])

    def is_known(self, hint):
        return any(re.search(text.pattern, hint) for text in self.texts)

    def test_every_hint_of_the_sources_was_followed(self):
        if not all(is_there(name) for name in ("--fail-nth", "--fail-cl", "--mpi")):
            self.skipTest("a library, a device or MPI is missing")
        missing = [f"{text.place}: {text.text}" for text in self.texts
                   if text.text not in EXEMPT and
                   not any(re.search(text.pattern, hint) for hint in FOLLOWED)]
        self.assertEqual(missing, [], "\n" + "\n".join(missing))

    def test_every_hint_that_was_followed_is_one_of_the_sources(self):
        # Several ways that lead on make one hint.
        unknown = [hint for hint in FOLLOWED if not self.is_known(hint)
                   and not all(self.is_known(part) for part in hint.split("; "))
                   and not any(hint in whole for whole in FOLLOWED - {hint})]
        self.assertEqual(unknown, [])

    def test_exemptions_are_hints_of_the_sources(self):
        self.assertLessEqual(set(EXEMPT), {text.text for text in self.texts})


def load_tests(loader, _, __):
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in (*CASES, EveryHint))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
