"""Bytes of the code of an evaluation, counted without the program: files, frames, the unpacker. The program's are the choice of
definitions and the text coder; tests/end_to_end/evaluator.sh builds what they packed.

    tests/structure/evaluation_code.py [ROOT] PART...     such as cuda record doc_lora adamw global_sgd sgd
"""
import os
import re
import subprocess
import sys
import tempfile
import zlib

RECORD_1886 = ("cuda", "record", "element:softcap", "element:xsa", "element:dense_gate", "doc_lora", "adamw", "global_sgd", "sgd")
PLUGIN_FOLDERS = ("plugins/backends", "plugins/losses", "plugins/schedules", "plugins/transforms", "optimizers", "ttt")
INCLUDE = re.compile(r'^[ \t]*#include[ \t]*["<]([^">]+)[">]', re.M)

def text_of(name):
    with open(name, encoding="latin-1") as file:
        return file.read()


def included(name, include):
    for folder in (os.path.dirname(name), "launch/evaluator/include", "", "include", "kernels"):
        for candidate in (include, re.sub(r"\.inc$", "", include)):
            path = os.path.normpath(os.path.join(folder, candidate))
            if os.path.isfile(path):
                return path
    return None


def order(name):
    """Kernels come last, by the names of their files, as evaluation_archive() sorts them."""
    kernel = name.startswith("kernels/")
    file = os.path.basename(name)
    return kernel, (os.path.splitext(file)[1], file) if kernel else (), name.split("/")


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
        if all((word.strip("!") in parts) != word.startswith("!") for word in heading.split()):
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
    return sorted(found, key=order)


# Reads names, lengths and texts; prints the packed bytes, then the unpacker's text.
PACKER = """#include <iostream>
#include <iterator>
#include "framework/artifact/reachable_source.h"
#include "framework/artifact/text_packer.h"
int main() {
  const std::string all(std::istreambuf_iterator<char>(std::cin), {});
  mulligan::SourceFiles files;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t space = all.find(' ', at), begin = all.find('\\n', at) + 1, length = std::stoul(all.substr(space));
    files.emplace_back(all.substr(at, space - at), all.substr(begin, length));
    at = begin + length;
  }
  const std::string unpacker = files.back().second;
  files.pop_back();
  std::string archive;
  for (const auto& [name, text] : mulligan::join_headers(mulligan::short_names(mulligan::reachable_source(files))))
    archive += name + '\\n' + text + '\\0';
  std::cout << mulligan::pack_text(archive).size() << "\\n"
            << mulligan::short_names({{"unpack.cpp", mulligan::without_comments(unpacker)}})[0].second;
}"""


def packed_bytes(parts):
    coder = text_of("framework/artifact/text_coder.h").replace("#pragma once\n", "")
    unpacker = coder + re.sub(r'#include ".*text_coder.h"\n', "", text_of("launch/evaluator/unpack.cpp"))
    texts = [(name, text_of(name)) for name in files(parts)] + [("", unpacker)]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["g++", "-std=c++20", "-O2", "-I.", "framework/artifact/reachable_source.cpp",
                        "framework/artifact/short_names.cpp", "-x", "c++", "-",
                        "-o", f"{folder}/pack"], input=PACKER.encode(), check=True)
        out = subprocess.run([f"{folder}/pack"], input="".join(f"{n} {len(t)}\n{t}" for n, t in texts).encode("latin-1"),
                             stdout=subprocess.PIPE, check=True).stdout
    packed, unpacker = out.split(b"\n", 1)
    return int(packed) + len(zlib.compress(unpacker, 9)) + 12


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    print(packed_bytes(sys.argv[2:] or RECORD_1886), "bytes,", len(files(sys.argv[2:] or RECORD_1886)), "files")
