#!/usr/bin/env python3
"""The machine code of a training step's CUDA kernels: checks it, and keeps the table of docs/kernels.md.

    kernel_table.py CUBINS               check the functions that `device = "compile"` wrote to the folder CUBINS
    kernel_table.py CUBINS --page PAGE   ... and that the table of PAGE is about these functions
    kernel_table.py CUBINS --write PAGE  ... and write the table

Prints "ok - WHAT", "not ok - WHAT" or "skipped - WHAT" for each check. MULLIGAN_NVDISASM, or --python with a Python that has
nvidia-cuda-nvdisasm, says where the disassembler is. tests/end_to_end/sass.sh makes CUBINS.
"""

import argparse
import collections
import concurrent.futures
import csv
import dataclasses
import os
import pathlib
import re
import sys

from machine_code import MachineCode, find_disassembler, read_cubin

# Functions that store 16-bit numbers one by one, and why they may. Whatever else does so fails.
OWN_ATTENTION = "the own attention, which stands in where cuDNN has none: tiles, no rows"
NARROW_STORES = {
    "head_gate_xsa_bwd": "dgate: one number for each head",
    "attention_fwd": OWN_ATTENTION,
    "attention_bwd_queries": OWN_ATTENTION,
    "attention_bwd_keys": OWN_ATTENTION,
}
BEGIN, END = "<!-- machine code: begin", "<!-- machine code: end -->"
COMMAND = "tests/end_to_end/sass.sh --write"
WIDTHS = (16, 8, 4, 2)


@dataclasses.dataclass
class Function:
    kernel: str
    name: str  # with template arguments
    registers: int
    shared: int
    spilled: int
    stack: int
    code: MachineCode

    def faults(self):
        """What is wrong with it, as sentences."""
        found = []
        if self.spilled or self.code.local:
            found.append(f"spills: {self.spilled} bytes by the compiler's count, {self.code.local} accesses of local memory")
        elif self.stack:
            found.append(f"keeps {self.stack} bytes in local memory")
        if self.code.narrow_halves and self.name.split("<")[0] not in NARROW_STORES:
            found.append(f"stores 16-bit numbers in {self.code.narrow_halves} instructions of 4 bytes or less")
        return found

    def row(self):
        counts = lambda of: " ".join(str(of[width]) if of[width] else "-" for width in WIDTHS)
        slow = ", ".join(f"{name.removesuffix('_slowpath')} {count}" for name, count in sorted(self.code.slow_paths.items()))
        return (f"| {self.kernel} | {self.name} | {self.registers} | {self.shared} | {self.code.instructions} "
                f"| {counts(self.code.loads)} | {counts(self.code.stores)} | {slow} |")


def read_functions(disassembler, folder):
    """(compiler's version, functions). Each disassembly takes most of a second: all cores work, one file each."""
    with open(folder / "functions.tsv", encoding="utf-8", newline="") as table:
        rows = list(csv.reader(table, delimiter="\t"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        codes = list(pool.map(lambda row: read_cubin(disassembler, folder / row[6]), rows))
    versions = {version for version, _ in codes}
    functions = []
    for (kernel, name, registers, shared, spilled, stack, _, symbol), (_, code) in zip(rows, codes):
        functions.append(Function(kernel, name, int(registers), int(shared), int(spilled), int(stack), code[symbol]))
    if len(versions) != 1:
        sys.exit(f"{folder}: code of {len(versions)} compilers")
    return versions.pop(), functions


def make_table(version, functions):
    """Functions that differ in constants alone have a row each where their code differs."""
    rows = collections.Counter(function.row() for function in functions)
    lines = [f"{BEGIN}. Made by {COMMAND}; compiler {version} -->",
             "| kernel | function | registers | shared bytes | instructions | loads 16 8 4 2 | stores 16 8 4 2 | slow paths |",
             "|---|---|---|---|---|---|---|---|", *sorted(rows), END]
    return "\n".join(lines)


def split_page(page):
    """(before, table, after) of the page's text."""
    text = page.read_text(encoding="utf-8")
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        sys.exit(f"{page}: has no lines '{BEGIN} ...' and '{END}'")
    return text[:begin], text[begin:end + len(END)], text[end + len(END):]


def names_in(table):
    return {tuple(cell.strip() for cell in line.split("|")[1:3]) for line in table.splitlines() if line.startswith("| ")
            } - {("kernel", "function")}


def check_page(page, version, functions):
    """Sentences on what of the table is out of date. Another compiler makes other numbers: then only names count."""
    _, table, _ = split_page(page)
    current, listed = {(f.kernel, f.name) for f in functions}, names_in(table)
    faults = [f"{' '.join(name)} is missing" for name in sorted(current - listed)]
    faults += [f"{' '.join(name)} is no longer compiled" for name in sorted(listed - current)]
    written_by = re.search(r"compiler (V[\d.]+)", table)
    if not faults and written_by and written_by[1] == version and table != make_table(version, functions):
        faults.append("numbers have changed")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cubins", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable, help="a Python that may have nvidia-cuda-nvdisasm")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE")
    arguments = parser.parse_args()
    disassembler = find_disassembler(arguments.python)
    if not disassembler:
        print("skipped - the kernels' machine code: there is no nvdisasm")
        return 0
    version, functions = read_functions(disassembler, arguments.cubins)
    faults = [f"{one.name} ({one.kernel}) {fault}" for one in functions for fault in one.faults()]
    if arguments.write:
        before, _, after = split_page(arguments.write)
        arguments.write.write_text(before + make_table(version, functions) + after, encoding="utf-8")
    if arguments.page and not names_in(split_page(arguments.page)[1]):
        print(f"skipped - the table of {arguments.page.name}, which has not been made: {COMMAND} makes it")
    elif arguments.page:
        faults += [f"{arguments.page.name}: {fault}; {COMMAND} writes the table" for fault in
                   check_page(arguments.page, version, functions)]
    for fault in faults:
        print(f"not ok - {fault}")
    if not faults:
        print(f"ok - machine code of {len(functions)} functions: nothing spills, activations are stored 8 or 16 bytes at a time")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
