#!/usr/bin/env bash
# What documentation and comments point at exists: links, anchors, files of the tree (documentation.py says which). Needs
# no build. That the check sees a fault is checked with planted ones.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
check=$root/tests/end_to_end/documentation.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
not_ok=0

flunk() { # flunk WHAT LINES
  echo "not ok - $1"
  sed 's/^/    /' <<<"$2"
  not_ok=1
}

if seen=$(python3 "$check" "$root" 2>&1); then echo "ok - what documentation and comments point at exists"
else flunk "what documentation and comments point at exists" "$seen"; fi

mkdir -p "$work/docs" "$work/framework/core" "$work/launch/site"
printf 'nav:\n  - Page: docs/page.md\n  - Other: docs/other.md\n  - README: README.md\n  - Map: docs/architecture.md\n  - Commands: docs/commands.md\n' >"$work/launch/site/mkdocs.yml"
printf 'MULLIGAN_COMMAND(sing, look, lab)\n' >"$work/launch/command_list.inc"
printf '# Commands\n\n`mulligan sing`\n' >"$work/docs/commands.md"
printf '# Page\n\n## A heading, with `code`\n\n[here](#a-heading-with-code) [other](other.md) `framework/core`\n' >"$work/docs/page.md"
printf '# Other\n\n[back](page.md#a-heading-with-code) `framework/core/real.h` `framework/core/NAME.h` `core/real.h`\n' >"$work/docs/other.md"
printf '// See docs/page.md#a-heading-with-code.\nint real;\n' >"$work/framework/core/real.h"
if seen=$(python3 "$check" "$work" 2>&1); then echo "ok - a sound tree has no fault"
else flunk "a sound tree has no fault" "$seen"; fi

# planted WHAT FILE LINE [NAMED]: with LINE in FILE there is exactly one fault, which names FILE, or NAMED.
planted() {
  cp -a "$work" "$work.planted"
  printf '%s\n' "$3" >>"$work.planted/$2"
  seen=$(python3 "$check" "$work.planted" 2>&1)
  local code=$?
  if [[ $code == 1 && $(wc -l <<<"$seen") == 1 && $seen == "${4:-$2}:"* ]]; then echo "ok - seen: $1"
  else flunk "seen: $1" "exit code $code: $seen"; fi
  rm -rf "$work.planted"
}
planted "a link to a page that is not there" docs/page.md '[gone](gone.md)'
planted "a link to a heading that is not there" docs/page.md '[gone](other.md#gone)'
planted "a link to a heading of the same page that is not there" docs/page.md '[gone](#gone)'
planted "a path that is not there" docs/page.md 'See `framework/core/gone.h`.'
planted "a module that is not there" docs/page.md 'See `framework/gone/`.'
planted "a path below a module that is not there" docs/page.md 'See `core/gone.h`.'
planted "a comment's page that is not there" framework/core/real.h '// See docs/gone.md.'
planted "a comment's anchor that is not there" framework/core/real.h '// See docs/page.md#gone.'
planted "a comment's file that is not there" framework/core/real.h '// As framework/core/gone.h has it.'
planted "a folder that the map does not name" docs/architecture.md '# Architecture, without any folder'
planted "a page outside of the repository" framework/core/real.h '// (spec/gone section 1)'
planted "a README that is too long" README.md "$(seq 171)"
planted "a command without a page" launch/command_list.inc 'MULLIGAN_COMMAND(dance, look, lab)' docs/commands.md
planted "a page that the site does not list" docs/unlisted.md "# Unlisted"
exit $not_ok
