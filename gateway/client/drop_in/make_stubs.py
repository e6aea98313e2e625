#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lists what a library exports, for the build of its drop-in form. Usage: make_stubs LIBRARY LATER_NAMES OUTPUT_PREFIX

Writes OUTPUT_PREFIX.stubs.inc (for stubs.S), OUTPUT_PREFIX.names.inc (for forward.cc) and OUTPUT_PREFIX.map (the linker's
version script): every function under each of its symbol versions, and those of LATER_NAMES that it lacks."""

import os
import re
import subprocess
import sys

SYMBOL = re.compile(r"^\w+ (\w+) ([A-Z]) (\w+)(@@?)([\w.]+)$", re.M)
VERSION = re.compile(r"^\w+(?: \w+)? A ([\w.]+)$", re.M)


def later_symbols(path, library):
    """Like SYMBOL's matches, of the library's row in the list of later functions."""
    name = os.path.basename(library).split(".")[0]
    with open(path, encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return [("0", "T", function, "@@", version) for of, version, function in rows if of == name]


def main():
    library, later, prefix = sys.argv[1:]
    listed = subprocess.run(["nm", "-D", "--defined-only", "--print-size", "--with-symbol-versions", library], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    symbols = SYMBOL.findall(listed)
    versions = set(VERSION.findall(listed))
    if not symbols or not versions:
        sys.exit(f"make_stubs: {library} exports nothing under a version")
    installed = {symbol[2] for symbol in symbols}
    symbols += [symbol for symbol in later_symbols(later, library) if symbol[2] not in installed]
    versions = sorted(versions | {symbol[4] for symbol in symbols})
    stubs, names = [], []
    for size, kind, name, separator, version in symbols:
        if kind == "T":
            stubs.append(f"ROCEGW_STUB({len(names)}, {name}{separator}{version})\n")
            names.append(f'ROCEGW_NAME("{name}", "{version}", {"true" if separator == "@@" else "false"})\n')
        elif kind == "B":
            stubs.append(f"ROCEGW_ZEROS({name}, {name}{separator}{version}, {int(size, 16)})\n")
        else:
            sys.exit(f"make_stubs: {name} of {library} is neither a function nor zeros")
    script = ""
    for version in versions:
        default = "".join(f"    {name};\n" for _, _, name, separator, of in symbols if separator == "@@" and of == version)
        script += f"{version} {{\n" + (f"  global:\n{default}" if default else "") + \
            ("  local:\n    *;\n" if version == versions[-1] else "") + "};\n"
    for suffix, text in (("stubs.inc", "".join(stubs)), ("names.inc", "".join(names)), ("map", script)):
        with open(f"{prefix}.{suffix}", "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
