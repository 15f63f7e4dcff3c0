#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every option of --help is in qrtool(1), and the reverse; no line of --help is over 80 columns."""
import pathlib
import re
import subprocess
import sys

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def main():
    qrtool, root = sys.argv[1], pathlib.Path(sys.argv[2])
    helps = {"": subprocess.run([qrtool, "--help"], capture_output=True, text=True,
                                check=True).stdout}
    commands = re.findall(r"^  qrtool (\w+)", helps[""], re.M)
    assert "factor" in commands and "verify" in commands, helps[""]
    for command in commands:
        helps[command] = subprocess.run(
            [qrtool, command, "--help"], capture_output=True, text=True, check=True
        ).stdout

    page = (root / "man/qrtool.1").read_text().replace("\\-", "-").replace("\\", "")
    in_page = set(OPTION.findall(page))
    in_help = set(OPTION.findall("\n".join(helps.values())))
    errors = [f"{option}: in --help, not in qrtool(1)" for option in sorted(in_help - in_page)]
    errors += [f"{option}: in qrtool(1), not in --help" for option in sorted(in_page - in_help)]
    for command in commands:
        if f".B qrtool {command}" not in page:
            errors.append(f"{command}: not in the synopsis of qrtool(1)")
    for command, text in helps.items():
        for line in text.splitlines():
            if len(line) > 80:
                errors.append(f"qrtool {command} --help: over 80 columns: {line}")
    print("\n".join(errors))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
