#!/usr/bin/env python3
"""The machine code of a training step's CUDA kernels: checks it, and writes docs/machine_code.csv.

    kernel_table.py CUBINS               check the functions that `device = "compile"` wrote to the folder CUBINS
    kernel_table.py CUBINS --table FILE  ... and that the table in FILE has these functions
    kernel_table.py CUBINS --write FILE  ... and write the table

Prints "ok - WHAT", "not ok - WHAT" or "skipped - WHAT" for each check. MULLIGAN_NVDISASM, or --python with a Python that has
nvidia-cuda-nvdisasm, says where the disassembler is. tests/end_to_end/sass.sh makes CUBINS.
"""

import argparse
import concurrent.futures
import csv
import dataclasses
import io
import os
import pathlib
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
        return (self.kernel, self.name, self.registers, self.shared, self.code.instructions, counts(self.code.loads),
                counts(self.code.stores), slow)


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


HEAD = ("kernel", "function", "registers", "shared bytes", "instructions", "loads 16 8 4 2", "stores 16 8 4 2", "slow paths")


def make_table(version, functions):
    """Functions that differ only in constants have a row each if their code differs."""
    text = io.StringIO()
    text.write(f"# Made by {COMMAND}; compiler {version}\n")
    csv.writer(text, lineterminator="\n").writerows([HEAD, *sorted({function.row() for function in functions})])
    return text.getvalue()


def check_table(text, version, functions):
    """Sentences on what of the table is out of date. Another compiler gives other numbers: then only names count."""
    rows = list(csv.reader(text.splitlines()[2:]))
    current, listed = {(f.kernel, f.name) for f in functions}, {tuple(row[:2]) for row in rows}
    faults = [f"{' '.join(name)} is missing" for name in sorted(current - listed)]
    faults += [f"{' '.join(name)} is no longer compiled" for name in sorted(listed - current)]
    if not faults and f"compiler {version}\n" in text and text != make_table(version, functions):
        faults.append("numbers have changed")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cubins", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable, help="a Python that may have nvidia-cuda-nvdisasm")
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    disassembler = find_disassembler(arguments.python)
    if not disassembler:
        print("skipped - the kernels' machine code: there is no nvdisasm")
        return 0
    version, functions = read_functions(disassembler, arguments.cubins)
    faults = [f"{one.name} ({one.kernel}) {fault}" for one in functions for fault in one.faults()]
    if arguments.write:
        arguments.write.write_text(make_table(version, functions), encoding="utf-8")
    if arguments.table:
        faults += [f"{arguments.table.name}: {fault}; {COMMAND} writes the table" for fault in
                   check_table(arguments.table.read_text(encoding="utf-8"), version, functions)]
    for fault in faults:
        print(f"not ok - {fault}")
    if not faults:
        print(f"ok - machine code of {len(functions)} functions: nothing spills, activations are stored 8 or 16 bytes at a time")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
