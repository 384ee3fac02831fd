#!/usr/bin/env bash
# The size and shape of the project stays within its bounds (tests/structure/run), and a bound that is broken is seen.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

if seen=$(tests/structure/run); then echo "ok - every figure is within its bound"; else echo "not ok - every figure is within its bound"; fi
sed 's/^/    /' <<<"$seen"

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r framework plugins optimizers ttt launch tools lab "$copy"
mkdir "$copy/framework/one_more"
seen=$(tests/structure/run "$copy")
if grep -q "^folders of framework/ .*above its bound" <<<"$seen"; then
  echo "ok - a further folder of framework/ is above the bound"
else
  echo "not ok - a further folder of framework/ is above the bound"
fi
