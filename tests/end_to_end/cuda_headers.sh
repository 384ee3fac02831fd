#!/usr/bin/env bash
# Which headers of cuDNN a configuration takes (cmake/MulliganCuda.cmake), in one build folder while they change.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

mkdir -p project cuda home
for header in cuda.h nvrtc.h cublasLt.h; do : >"cuda/$header"; done
cat >project/CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(headers LANGUAGES NONE)
include("$root/cmake/MulliganCuda.cmake")
CMAKE
# headers FOLDER MAJOR MINOR: those of a version.
headers() {
  mkdir -p "$1"
  : >"$1/cudnn_graph.h"
  printf '#define CUDNN_MAJOR %d\n#define CUDNN_MINOR %d\n#define CUDNN_PATCHLEVEL 1\n' "$2" "$3" >"$1/cudnn_version.h"
  printf '#define CUDNN_VERSION (%d * 10000 + %d * 100 + 1)\n' "$2" "$3" >>"$1/cudnn_graph.h"
}
# configured: what the configuration says of cuDNN.
configured() {
  env -u CUDNN_HOME -u CUDNN_PATH -u CONDA_PREFIX HOME="$work/home" VIRTUAL_ENV="$work/python" \
    cmake -S project -B built -DMULLIGAN_CUDA_INCLUDE="$work/cuda" 2>&1 | tr '\n' ' '
}

headers cuda 9 13
seen=$(configured)
check_contains "too old: the version and the folder" "found: 9.13.1 in $work/cuda" "$seen"
check_contains "too old: what to run" "pip install 'nvidia-cudnn-cu12>=9.18.1'" "$seen"
headers cuda 9 18
check_contains "a newer version in the same folder is taken" "headers of 9.18.1 in $work/cuda" "$(configured)"
headers cuda 9 15
check_contains "an older one is not" "found: 9.15.1 in $work/cuda" "$(configured)"
headers python/lib/python3.12/site-packages/nvidia/cudnn/include 9 19
check_contains "a wheel's headers are taken" "headers of 9.19.1 in $work/python/lib/python3.12/site-packages/nvidia/cudnn/include" "$(configured)"
headers python/lib/python3.12/site-packages/nvidia/cudnn/include 10 0
check_contains "a major version with two digits is newer" "headers of 10.0.1" "$(configured)"
