#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The arrows between the layers: core knows nobody, io and gpu know core, app knows all."""
import pathlib
import re
import sys

ALLOWED = {
    "core": {"core"},
    "io": {"io", "core"},
    "gpu": {"gpu", "core"},
    "app": {"app", "io", "gpu", "core"},
}
# Libraries that belong to one layer: header pattern -> layers that may include it.
OWNED = {
    r"<hdf5": {"io"},
    r"<fast_float": {"io"},
    r"<CL/": {"gpu"},
    r"<CLI/": {"app"},
    r"<mpi\.h": {"app"},
    r"<Eigen/": {"core"},
}


def wrong_includes(root):
    for layer, allowed in ALLOWED.items():
        for path in sorted((root / layer).rglob("*.[ch]pp")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                place = f"{path.relative_to(root)}:{number}: {line}"
                own = re.match(r'\s*#\s*include\s+"([^/"]+)/', line)
                if own and own.group(1) not in allowed:
                    yield place
                for pattern, layers in OWNED.items():
                    if re.match(r"\s*#\s*include\s+" + pattern, line) and layer not in layers:
                        yield place
                if layer in ("core", "io", "gpu") and re.search(r"\bstd::(cout|cerr)\b|\bprintf\(", line):
                    yield place + "   (only app prints)"


def main():
    root = pathlib.Path(sys.argv[1])
    wrong = list(wrong_includes(root))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
