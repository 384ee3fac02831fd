#!/usr/bin/env bash
# The folders of framework/, tools/ and lab/ are modules that stand on one another in one direction: each includes only
# what its CMakeLists.txt names, each names only modules above it in the lists of framework/, tools/ and lab/CMakeLists.txt,
# read in this order, and train, artifact and ttt do not know each other. So nothing in framework/ knows tools/ or lab/,
# and no tool knows lab/. Commands are the program's: those of tools/ know no lab, and none is known to a module.
# Framework and plugins do not know each other's insides. Of a kernel's folder (kernels/NAME) each file belongs to the
# library that its name says: op* to the module graph, cpu* and cuda* to these backends. signature*
# includes none of them, and all may include it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
exec python3 - <<'PYTHON'
import os
import re

LAYERS = ("framework", "tools", "lab")
SIDE_BY_SIDE = {"train", "artifact", "ttt"}
SOURCES = (".h", ".cpp", ".cu")
FOREIGN = {"kernel_files", "compressors", "sentencepiece", "sdk", "module", "computing_code", "build_commit"}  # named in lists, and no modules


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def files_below(folder):
    for path, _, names in os.walk(folder):
        yield from (os.path.join(path, name) for name in sorted(names) if name.endswith(SOURCES))


def check(what, findings):
    print(("not ok - " if findings else "ok - ") + what)
    for finding in findings:
        print("    " + finding)


modules = {}  # name: (layer, place)
for layer in LAYERS:
    listed = re.search(r"foreach\(module\s+(.*?)\)", text_of(layer + "/CMakeLists.txt"), re.S)[1].split()
    for name in listed:
        modules[name] = (layer, len(modules))
    present = sorted(f for f in os.listdir(layer) if os.path.isdir(f"{layer}/{f}") and f != "commands")
    check(f"every folder of {layer}/ is in its list", sorted(set(listed) ^ set(present)))

upward, undeclared, unused, acquainted = [], [], [], []
include = re.compile(r'^#include "(framework|tools|lab|launch)/([a-z_0-9]+)', re.M)
for module, (layer, place) in modules.items():
    named = set(re.findall(r"mulligan_([a-z_]+)", text_of(f"{layer}/{module}/CMakeLists.txt"))) - FOREIGN - {module}
    included = {}
    for path in files_below(f"{layer}/{module}"):
        for top, other in include.findall(text_of(path)):
            if top == "launch" or other == "commands":
                upward.append(f"{path} includes {top}/{other}, which is the program's")
            elif other != module:
                included[other] = path
    for other in sorted(named | set(included)):
        if other not in modules:
            upward.append(f"{module} knows {other}, which is not a module")
        elif modules[other][1] > place:
            upward.append(f"{module} knows {other}, which comes after it: {included.get(other, 'CMakeLists.txt')}")
        elif {module, other} <= SIDE_BY_SIDE:
            acquainted.append(f"{module} knows {other}")
    undeclared += [f"{module} includes {other}: {included[other]}" for other in sorted(set(included) - named)]
    unused += [f"{module} names {other}" for other in sorted(named - set(included))]
check("no module includes or names one that comes after it", upward)
check("every module names what it includes", undeclared)
check("no module names what it does not include", unused)
check("train, artifact and ttt do not know each other", acquainted)


def included_of(folders, pattern):
    wanted = re.compile(pattern, re.M)
    return [f"{path}: {found[0]}" for folder in folders for path in files_below(folder)
            for found in wanted.finditer(text_of(path))]


check("the core's program includes no tool and nothing of the lab", included_of(["launch"], r'^#include "(tools|lab)/.*'))
check("commands of tools/ include nothing of the lab", included_of(["tools/commands"], r'^#include "lab/.*'))
KERNELS = "kernels"
PARTS = {  # of a kernel: what they may include of the project
    "op": r"framework/graph/|kernels/\w+/op",
    "signature": r"kernels/\w+/signature",
    "cpu": r"kernels/\w+/(cpu|signature)|plugins/backends/(cpu|common)/",
    "cuda": r"kernels/\w+/(cuda|signature)|plugins/backends/(cuda|common)/",
    "test": r"kernels/\w+/signature|tests/|framework/core/",
}
part_of = re.compile(r"/(?:(op|signature|cpu|cuda)(?:_\w+)?|\w+_(test))\.\w+$")
nameless, strangers = [], []
for path in files_below(KERNELS):
    part = part_of.search(path)
    if not part:
        nameless.append(path)
        continue
    strangers += [f"{path} includes {name}" for name in re.findall(r'^#include "(\w+/[^"]+)"', text_of(path), re.M)
                  if not re.match(PARTS[part[1] or part[2]], name) and not name.endswith(".cu.inc")]
check("every file of a kernel's folder is named after the library that it belongs to", nameless)
check("the parts of a kernel include nothing of another library's", strangers)
check("framework, tools and lab include no plugin, and only ops of kernels",
      included_of(LAYERS, r'^#include "(plugins|kernels/(?!\w+/op)|optimizers|ttt).*'))
check("a plugin includes nothing of the framework, and no op",
      [f"{path}: {found[0]}" for path in [*files_below("plugins"), *files_below("optimizers"), *files_below("ttt")]
       for found in re.finditer(r'^#include "(framework|tools|lab|launch|kernels/\w+/op).*', text_of(path), re.M)])
PYTHON
