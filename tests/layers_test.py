#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The arrows between the layers: core knows nobody, io and gpu know core, app knows all, but for
the C interface and what it shares with the program, which know neither io nor the rest of app.
Includes are paths from the root; rooms keep their libraries, and a kernel takes nothing from
another variant's room. Inside a layer no two folders include each other: neither its uppermost
folders, each with all below it, nor any two folders by themselves. The files of a layer that lie
in none of its folders count as one folder."""
import pathlib
import re
import sys

ALLOWED = {
    "core": {"core"},
    "io": {"io", "core"},
    "gpu": {"gpu", "core"},
    "app": {"app", "io", "gpu", "core"},
}
# Rooms of app that know less than app, and print nothing.
NARROW = {
    "app/engine": ("app/engine/", "gpu/", "core/"),
    "app/capi": ("app/capi/", "app/engine/", "gpu/", "core/"),
}
# Libraries that belong to one room: header pattern -> the room that may include it.
OWNED = {
    r"<hdf5": "io/hdf5",
    r"<zlib": "io",
    r"<zip\.h": "io/npy",
    r"<fast_float": "io/text",
    r"<CL/": "gpu/host",
    r"<CLI/": "app/cli",
    r"<mpi\.h": "app/ranks",
    r"<Eigen/": "core",
}
# A kernel includes files of its own folder and what several share. The rest of a room is its own.
SHARED = {
    "gpu": ("gpu/common/", "gpu/products/"),
    "gpu/gram": ("gpu/gram/steps/",),
    "gpu/solve": ("gpu/solve/parts/",),
    "gpu/solve/normal": ("gpu/gram/steps/",),
}


def narrow_room_of(path):
    return next((room for room in NARROW if path.is_relative_to(room)), None)


def is_wrong(root, path, included):
    layer, room = path.parts[0], narrow_room_of(path)
    if room and not included.startswith(NARROW[room]):
        return True
    if included.split("/")[0] not in ALLOWED[layer] or not (root / included).is_file():
        return True
    shared = [folder for room, folders in SHARED.items() if path.is_relative_to(room)
              for folder in folders]
    is_kernel = path.suffix in (".cl", ".clh")
    return is_kernel and not included.startswith((*shared, f"{path.parent.as_posix()}/"))


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
        if prints and (layer != "app" or narrow_room_of(path)):
            yield place + "   (only the program prints)"


def folder_of(path, depth):
    return "/".join(path.split("/")[:-1][:depth])


def pairs_of_folders(includes, depth):
    """The pairs of folders of one layer that include each other, each with an example of both."""
    arrows = {}
    for source, target in includes:
        one, other = folder_of(source, depth), folder_of(target, depth)
        if one != other and one.split("/")[0] == other.split("/")[0]:
            arrows.setdefault((one, other), f"{source} includes {target}")
    for one, other in sorted(arrows):
        if one < other and (other, one) in arrows:
            yield (one, other), f"{arrows[one, other]}, but {arrows[other, one]}"


def wrong_pairs(root):
    includes = []
    for path in sources(root):
        for line in (root / path).read_text().splitlines():
            own = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if own:
                includes.append((path.as_posix(), own.group(1)))
    found = {}
    for depth in (2, 100):
        found.update(pairs_of_folders(includes, depth))
    for pair, example in found.items():
        yield f"{pair[0]} and {pair[1]} include each other: {example}"


def sources(root):
    for layer in ALLOWED:
        for path in sorted((root / layer).rglob("*")):
            if path.suffix in (".cpp", ".hpp", ".cl", ".clh"):
                yield path.relative_to(root)


def wrong_includes(root):
    for layer in ALLOWED:
        paths = [path for path in sources(root) if path.parts[0] == layer]
        if not paths:
            yield f"{layer}: no sources"
        for path in paths:
            yield from wrong_lines(root, path)


def main():
    root = pathlib.Path(sys.argv[1])
    wrong = [*wrong_includes(root), *wrong_pairs(root)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
