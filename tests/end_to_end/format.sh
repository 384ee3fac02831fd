#!/usr/bin/env bash
# The C++ and CUDA sources are formatted as .clang-format says, one check per folder. Needs no build. Only version 14 of
# clang-format (Debian 12's) decides: others format differently.
#
#   tests/end_to_end/format.sh          checks
#   tests/end_to_end/format.sh --fix    formats
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
kept='^tests/fuzz/corpus/'

formatter=
for candidate in clang-format-14 clang-format; do
  if "$candidate" --version 2>/dev/null | grep -q 'version 14\.'; then formatter=$candidate; break; fi
done

sources() { # sources FOLDER: NUL-separated
  find "$1" -regextype egrep -regex '.*\.(c|cpp|h|hpp|cu|cuh)' -printf '%p\0' | grep -zvE "$kept" | sort -z
}

not_ok=0
if [[ -z $formatter && -f .clang-format ]]; then echo "ok - the rules of formatting are there"; fi
for folder in framework include kernels lab launch optimizers plugins tests tools ttt; do
  if [[ -z $formatter ]]; then
    echo "skipped - the sources of $folder are formatted (clang-format 14 is not installed)"
  elif [[ "${1:-}" == --fix ]]; then
    sources "$folder" | xargs -0 -r -n 40 -P "$(nproc)" "$formatter" -i || not_ok=1
  elif seen=$(sources "$folder" | xargs -0 -r -n 40 -P "$(nproc)" "$formatter" --dry-run -Werror 2>&1); then
    echo "ok - the sources of $folder are formatted"
  else
    echo "not ok - the sources of $folder are formatted (tests/end_to_end/format.sh --fix)"
    grep -oE '^[^:]+:[0-9]+' <<<"$seen" | sort -u | sed 's/^/    /'
    not_ok=1
  fi
done

# That a fault is seen.
if [[ -n $formatter && "${1:-}" != --fix ]]; then
  if printf 'int  a;\n' | "$formatter" --assume-filename=framework/a.cpp --dry-run -Werror 2>/dev/null; then
    echo "not ok - a fault of formatting is seen"
    not_ok=1
  else
    echo "ok - a fault of formatting is seen"
  fi
fi
exit $not_ok
