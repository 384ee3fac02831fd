#!/usr/bin/env bash
# The folders of framework/ are modules that stand on one another in one direction: each includes only what its
# CMakeLists.txt names, each names only modules above it in the list of framework/CMakeLists.txt, and from `train` on none
# knows another. Framework and plugins do not know each other's insides.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

check() { # check WHAT FINDINGS
  if [[ -z "$2" ]]; then echo "ok - $1"; else
    echo "not ok - $1"
    printf '%s\n' "$2" | sed 's/^/    /'
  fi
}

modules=$(sed -n '/^foreach(module/,/)$/p' framework/CMakeLists.txt | tr -d ')' | sed 's/^foreach(module//' | xargs)
position() { # position MODULE: its place in the list, or nothing
  local i=0 m
  for m in $modules; do
    [[ $m == "$1" ]] && echo $i && return
    i=$((i + 1))
  done
}
folders=$(cd framework && for folder in */; do echo "${folder%/}"; done | sort)
check "every folder of framework/ is in the list" "$(diff <(tr ' ' '\n' <<<"$modules" | sort) <(echo "$folders"))"

# declared FOLDER: the modules that its CMakeLists.txt names
declared() { grep -oh 'mulligan_[a-z_]*' "framework/$1/CMakeLists.txt" | sed 's/^mulligan_//' | sort -u; }
beside=" train artifact ttt sweep cost "
upward="" undeclared="" acquainted="" unused=""
for module in $modules; do
  own=$(position "$module")
  names=$(declared "$module")
  included=$(grep -rhoE '^#include "framework/[a-z_]+/' "framework/$module" | sed 's|.*framework/||; s|/||' | sort -u)
  for other in $names; do
    [[ $other == "$module" ]] && continue
    place=$(position "$other")
    [[ -n $place && $place -gt $own ]] && upward+="$module names $other, which comes after it"$'\n'
    [[ $beside == *" $module "* && $beside == *" $other "* ]] && acquainted+="$module names $other"$'\n'
  done
  for other in $included; do
    [[ $other == "$module" ]] && continue
    place=$(position "$other")
    if [[ -z $place ]]; then upward+="$module includes $other, which is no module"$'\n'; continue; fi
    ((place > own)) && upward+="$module includes $other: $(grep -rlE "^#include \"framework/$other/" "framework/$module" | xargs)"$'\n'
    [[ $beside == *" $module "* && $beside == *" $other "* ]] && acquainted+="$module includes $other"$'\n'
    grep -qx "$other" <<<"$names" || undeclared+="$module includes $other"$'\n'
  done
  for other in $names; do
    [[ $other == "$module" || -z $(position "$other") ]] && continue
    grep -qx "$other" <<<"$included" || unused+="$module names $other and includes nothing of it"$'\n'
  done
done
check "no module includes or names one that comes after it" "$upward"
check "every module names what it includes" "$undeclared"
check "no module names what it does not include" "$unused"
check "train, artifact, ttt, sweep and cost do not know each other" "$acquainted"
check "the framework includes no file of a plugin" \
  "$(grep -rnE '^#include "(plugins|optimizers|ttt)/' framework)"
check "a plugin includes nothing of the framework" \
  "$(grep -rnE '^#include "(framework|launch)/' plugins optimizers ttt)"
