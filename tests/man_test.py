#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""man_test.py QRTOOL ROOT [--write]: the options of qrtool(1) are those of the program.

The page has the prose; the line that names an option, its value and its words comes from the
program, in the sections OPTIONS OF .. and for the commands that their titles name. With --write
such lines are written into the page; without it they are compared. Every option of a command must
be in a section for that command. No line of --help is over 80 columns."""
import pathlib
import re
import subprocess
import sys

ANY_COMMAND = "EVERY COMMAND"
IN_HELP = re.compile(r"^  (?:(-\w), )?(--[a-z][a-z0-9-]*)(?: (\S+))?(?:  |$)", re.M)
IN_PAGE = re.compile(r"^\.B[IR]? .*?(\\-\\-[a-z][a-z0-9\\-]*).*$")
OPTION = re.compile(r"--[a-z][a-z0-9-]*")
SINGLE = {"--version"}  # of the program, not of a command


def run(*args):
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout


def words_of(qrtool, command, option):
    """What may stand for WORD, in the order of the program: the first is the default."""
    return [line.split("\t")[0]
            for line in run(qrtool, "complete", command, option, "").splitlines()]


def tag_of(qrtool, command, short, option, value):
    """The line of the page that names an option."""
    name = option.replace("-", r"\-")
    if short is not None:
        return f'.BR {short.replace("-", chr(92) + "-")} ", " {name}'
    if value is None:
        return f".B {name}"
    if "WORD" in value:
        value = value.replace("WORD", "|".join(words_of(qrtool, command, option)))
    return f'.BI {name} " {value}"'


def commands_of(title, commands):
    """The commands that a section's title names; none where it is no section of options."""
    if not title.startswith("OPTIONS OF "):
        return []
    if title.endswith(ANY_COMMAND):
        return list(commands)
    return [word for word in re.findall(r"\w+", title.lower()) if word in commands]


def main():
    qrtool, root = sys.argv[1], pathlib.Path(sys.argv[2])
    overview = run(qrtool, "--help")
    commands = re.findall(r"^  qrtool (\w+)", overview, re.M)
    assert "factor" in commands and "verify" in commands, overview
    helps = {command: run(qrtool, command, "--help") for command in commands}
    options = {command: {option: (short or None, option, value or None)
                         for short, option, value in IN_HELP.findall(text)}
               for command, text in helps.items()}

    path = root / "man/qrtool.1"
    lines, errors = path.read_text().splitlines(), []
    described = {command: set() for command in commands}
    of_section = []
    for i, line in enumerate(lines):
        if line.startswith(".SH "):
            of_section = commands_of(line[4:], commands)
        for command in of_section:
            described[command].update(OPTION.findall(line.replace("\\-", "-")))
        if not of_section or i == 0 or lines[i - 1] not in (".TP", ".TQ"):
            continue
        found = IN_PAGE.match(line)
        option = found[1].replace("\\", "") if found else line
        having = [command for command in of_section if option in options[command]]
        if not having:
            if option not in SINGLE:
                errors.append(f"qrtool.1:{i + 1}: no command of this section has {option}")
            continue
        wanted = {tag_of(qrtool, command, *options[command][option]) for command in having}
        if len(wanted) > 1:
            errors.append(f"qrtool.1:{i + 1}: {option} differs between {', '.join(having)}")
        elif line not in wanted:
            if "--write" in sys.argv:
                lines[i] = wanted.pop()
            else:
                errors.append(f"qrtool.1:{i + 1}: {line}, but the program has {wanted.pop()};"
                              " man_test.py --write mends it")
    if "--write" in sys.argv:
        path.write_text("\n".join(lines) + "\n")

    for command, has in options.items():
        errors += [f"{option}: in {command} --help, not in a section of qrtool(1) for {command}"
                   for option in has if option not in described[command]]
        if f".B qrtool {command}" not in "\n".join(lines):
            errors.append(f"{command}: not in the synopsis of qrtool(1)")
    for command, text in {"": overview, **helps}.items():
        errors += [f"qrtool {command} --help: over 80 columns: {line}"
                   for line in text.splitlines() if len(line) > 80]
    print("\n".join(errors))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
