"""Bytes of the code of an evaluation, counted without the program: files, comments, frames, the unpacker. The text coder
alone is the program's; tests/end_to_end/evaluator.sh unpacks what it packed.

    tests/structure/evaluation_code.py [ROOT] PART...     such as cuda record doc_lora adamw global_sgd sgd
"""
import os
import re
import subprocess
import sys
import tempfile
import zlib

RECORD_1886 = ("cuda", "record", "doc_lora", "adamw", "global_sgd", "sgd")
PLUGIN_FOLDERS = ("plugins/backends", "plugins/losses", "plugins/schedules", "plugins/transforms", "optimizers", "ttt")
INCLUDE = re.compile(r'^[ \t]*#include[ \t]*["<]([^">]+)[">]', re.M)
TOKEN = re.compile(r'''(?P<line_comment>//[^\n]*)|(?P<comment>/\*.*?(?:\*/|\Z))|(?P<newline>\n)|(?P<space>[ \t\r]+)
    |(?P<raw>(?<=R)"(?P<mark>[^("]*)\(.*?\)(?P=mark)")|(?P<string>"(?:\\.|[^"\\\n])*"?)
    |(?P<separator>(?<=[0-9A-Fa-f])'(?=[0-9A-Fa-f]))|(?P<char>'(?:\\.|[^'\\\n])*'?)|(?P<other>.)''', re.S | re.X)


def text_of(name):
    with open(name, encoding="latin-1") as file:
        return file.read()


def stripped(source):
    out = ""
    parts = []
    for match in TOKEN.finditer(source):
        kind, text = match.lastgroup, match.group()
        if kind == "mark":
            kind = "raw"
        if kind in ("comment", "space"):
            text = " " if out and out not in " \n" else ""
        elif kind == "newline":
            if out == " ":
                parts.pop()
                out = parts[-1][-1] if parts else ""
            text = "\n" if out and out != "\n" else ""
        elif kind == "line_comment":
            text = ""
        if text:
            parts.append(text)
            out = text[-1]
    if out == " ":
        parts.pop()
    joined = "".join(parts)
    return joined if not joined or joined.endswith("\n") else joined + "\n"


def included(name, include):
    for folder in (os.path.dirname(name), "", "include", "kernels"):
        for candidate in (include, re.sub(r"\.inc$", "", include)):
            path = os.path.normpath(os.path.join(folder, candidate))
            if os.path.isfile(path):
                return path
    return None


def files(parts):
    listed, section = {"": []}, ""
    for line in text_of("launch/evaluator/sources.txt").splitlines():
        if line.startswith("["):
            section = line[1:-1]
            listed[section] = []
        elif line and not line.startswith("#"):
            listed[section].append(line)
    pending = ["launch/evaluator/CMakeLists.txt"]
    for heading, names in listed.items():
        if all(word in parts for word in heading.split()):
            pending += names
    for part in parts:
        if part not in listed:
            folder = next(f"{f}/{part}" for f in PLUGIN_FOLDERS if os.path.isdir(f"{f}/{part}"))
            pending += [os.path.join(path, name) for path, _, names in os.walk(folder) for name in names
                        if name.endswith(".cpp") and not name.endswith("_test.cpp")]
    found = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += [path for path in (included(name, i) for i in INCLUDE.findall(text_of(name))) if path]
    return sorted(found, key=lambda name: name.split("/"))


PACKER = """#include <iostream>
#include <iterator>
#include <string>
#include "framework/artifact/text_packer.h"
int main() { std::cout << mulligan::pack_text(std::string(std::istreambuf_iterator<char>(std::cin), {})).size(); }"""


def text_packed(data):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["g++", "-std=c++20", "-O2", "-I.", "-x", "c++", "-", "-o", f"{folder}/pack"],
                       input=PACKER.encode(), check=True)
        return int(subprocess.run([f"{folder}/pack"], input=data, stdout=subprocess.PIPE, check=True).stdout)


def unpacker():
    coder = stripped(text_of("framework/artifact/text_coder.h")).replace("#pragma once\n", "")
    program = stripped(text_of("launch/evaluator/unpack.cpp"))
    return (coder + re.sub(r'#include ".*text_coder.h"\n', "", program)).encode()


def archive_of(parts):
    archive = b""
    for name in files(parts):
        text = text_of(name)
        if os.path.splitext(name)[1] in (".h", ".hpp", ".inc", ".c", ".cpp", ".cu", ".cuh"):
            text = stripped(text)
        archive += f"{name} {len(text)}\n{text}".encode("latin-1")
    return archive


def packed_bytes(parts):
    return text_packed(archive_of(parts)) + len(zlib.compress(unpacker(), 9)) + 12


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    print(packed_bytes(sys.argv[2:] or RECORD_1886), "bytes,", len(files(sys.argv[2:] or RECORD_1886)), "files")
