#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The arrows between the layers: core knows nobody, io and gpu know core, app knows all. Includes
are paths from the root; rooms keep their libraries, and a kernel takes nothing from another
variant's room."""
import pathlib
import re
import sys

ALLOWED = {
    "core": {"core"},
    "io": {"io", "core"},
    "gpu": {"gpu", "core"},
    "app": {"app", "io", "gpu", "core"},
}
# Libraries that belong to one room: header pattern -> the room that may include it.
OWNED = {
    r"<hdf5": "io/hdf5",
    r"<zlib": "io",
    r"<zip\.h": "io/npy",
    r"<fast_float": "io/csv",
    r"<CL/": "gpu/host",
    r"<CLI/": "app/cli",
    r"<mpi\.h": "app/ranks",
    r"<Eigen/": "core",
}
# Kernels that may take from gpu only what several share: the rest of a room is its own.
SHARED = ("gpu/common/", "gpu/products/")


def is_wrong(root, path, included):
    layer = path.parts[0]
    if included.split("/")[0] not in ALLOWED[layer] or not (root / included).is_file():
        return True
    is_kernel = path.suffix in (".cl", ".clh")
    return is_kernel and not included.startswith((*SHARED, f"{path.parent.as_posix()}/"))


def wrong_lines(root, path):
    layer = path.parts[0]
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        place = f"{path}:{number}: {line}"
        own = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if own and is_wrong(root, path, own.group(1)):
            yield place
        for pattern, room in OWNED.items():
            if re.match(r"\s*#\s*include\s+" + pattern, line) and not path.is_relative_to(room):
                yield place
        is_code = path.suffix in (".cpp", ".hpp")
        prints = is_code and re.search(r"\bstd::(cout|cerr)\b|\bprintf\(", line)
        if layer != "app" and prints:
            yield place + "   (only app prints)"


def wrong_includes(root):
    for layer in ALLOWED:
        paths = [path for path in sorted((root / layer).rglob("*"))
                 if path.suffix in (".cpp", ".hpp", ".cl", ".clh")]
        if not paths:
            yield f"{layer}: no sources"
        for path in paths:
            yield from wrong_lines(root, path.relative_to(root))


def main():
    root = pathlib.Path(sys.argv[1])
    wrong = list(wrong_includes(root))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
