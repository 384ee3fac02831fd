#!/usr/bin/env bash
# launch/dependencies on a system whose tools are older than the build needs.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

mkdir bin
# stub NAME LINE...: a program that prints that.
stub() { printf '#!/bin/sh\n%s\n' "$2" >"bin/$1" && chmod +x "bin/$1"; }
stub dpkg-query 'echo "ii "' # everything is installed
stub apt-get 'exit 1'
stub cmake 'echo "cmake version 3.22.1"'
stub g++ 'echo 11.4.0'
dependencies() { PATH=$work/bin:$PATH "$root/launch/dependencies" "$@" 2>&1; }
seen=$(dependencies --check)
check_equal "old tools: the exit code" 1 "$(dependencies --check >/dev/null && echo 0 || echo $?)"
check_contains "old cmake: from PyPI" "cmake 3.22.1 is older than 3.25; run 'pip install cmake ninja'" "$seen"
check_contains "old g++: which compiler" "g++ 11.4.0 is older than 12; run 'apt-get install g++-12', then configure with CXX=g++-12" "$seen"
check_contains "or no build at all" "take the archive" "$seen"
stub cmake 'echo "cmake version 3.31.2"'
stub g++ 'echo 12.3.0'
check "newer tools are enough" dependencies --check
