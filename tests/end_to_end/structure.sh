#!/usr/bin/env bash
# The size and shape of the project stays within its bounds (tests/structure/run), and a bound that is broken is seen.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

if seen=$(tests/structure/run); then echo "ok - every figure is within its bound"; else echo "not ok - every figure is within its bound"; fi
sed 's/^/    /' <<<"$seen"

if seen=$(tests/structure/prose.py); then echo "ok - prose is within its bounds"; else echo "not ok - prose is within its bounds"; fi
sed 's/^/    /' <<<"$seen"

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r framework include kernels plugins optimizers ttt launch tools lab "$copy"
mkdir "$copy/framework/one_more"
seen=$(tests/structure/run "$copy")
if grep -q "^folders of framework/ .*above its bound" <<<"$seen"; then
  echo "ok - a further folder of framework/ is above the bound"
else
  echo "not ok - a further folder of framework/ is above the bound"
fi

git init -q "$copy" # prose.py reads the files that git tracks
mkdir -p "$copy/pages"
{ printf 'The sentence'; printf ' goes on%.0s' {1..20}; echo '.'; } >"$copy/README.md"
echo 'Whoever reads this page reads a private word.' >"$copy/pages/page.md"
git -C "$copy" add README.md pages
seen=$(tests/structure/prose.py "$copy" --list sentences; tests/structure/prose.py "$copy" --list pages)
if grep -q '^README.md:1: The sentence goes' <<<"$seen" && grep -q '^pages/page.md: Whoever' <<<"$seen"; then
  echo "ok - a long sentence and a private word are found"
else
  echo "not ok - a long sentence and a private word are found"
fi
