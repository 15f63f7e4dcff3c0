#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""draw_prose.py SEED: prints 40 comments of app, core and io, drawn by chance, each with its place
and the declaration below it. Whoever has not seen the code reads each comment without the
declaration (--hide leaves it out), and says whether it is understood at first reading."""
import argparse
import pathlib
import random
import re

LAYERS = ("app", "core", "io")
COMMENT = re.compile(r"\s*//")


def comments_of(path):
    """The comments above functions, types and constants: first line, text, declaration."""
    lines = path.read_text().splitlines()
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and COMMENT.match(lines[end]):
            end += 1
        is_head = at == 0  # the licence, and what the file is
        below = lines[end].strip() if end < len(lines) else ""
        # A declaration begins with one of these words, or is a function with its parameters.
        declares = re.match(r"(template|class|struct|enum|using|(inline |static )?constexpr)\b",
                            below)
        calls = re.match(r"[\w:<>,*&\[\] ]+ [*&]?[\w:~]+\([^;]*(\{|;|,)$", below)
        is_statement = re.match(r"(return|if|for|while|else|throw|case|delete)\b", below)
        if end > at and not is_head and (declares or calls) and not is_statement:
            text = " ".join(line.strip().lstrip("/").strip() for line in lines[at:end])
            yield at + 1, text, below
        at = max(end, at + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--hide", action="store_true", help="leave the declarations out")
    parser.add_argument("--count", type=int, default=40)
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    found = [
        (path.relative_to(root), *comment)
        for layer in LAYERS
        for path in sorted((root / layer).rglob("*"))
        if path.suffix in (".cpp", ".hpp", ".h")
        for comment in comments_of(path)
    ]
    for number, (path, line, text, below) in enumerate(
            sorted(random.Random(options.seed).sample(found, options.count)), 1):
        print(f"{number}. {path}:{line}\n   {text}")
        if not options.hide:
            print(f"   > {below}")


if __name__ == "__main__":
    main()
