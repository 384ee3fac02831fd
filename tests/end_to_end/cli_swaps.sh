#!/usr/bin/env bash
# An optimiser that is built outside of the tree takes a few lines of TOML, by name or by path.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_corpus corpus
"$mulligan" prepare corpus --out data --vocab-size 384 --validation-fraction 0.1 >/dev/null
small_config "$work/data" | sed -e 's/^vocabulary = .*/vocabulary = 384/' -e 's/^steps = .*/steps = 12/' >base.toml

# run_variant WHAT LINES [ARGUMENT...]: base.toml with LINES laid over it trains and its loss falls.
run_variant() {
  local what=$1 lines=$2 out
  shift 2
  printf 'extends = "base.toml"\n%s\n' "$lines" >variant.toml
  if ! out=$("$mulligan" train variant.toml --set run.directory=runs/variant --overwrite "$@" 2>&1); then
    flunk "$what" "$(tail -n 3 <<<"$out")"
    return
  fi
  check_true "$what" "$(json runs/variant/result.json final_loss_nats) < $(json runs/variant/result.json initial_loss_nats) - 0.2"
}

# plugins/example, built by the tests against an installed SDK.
lion=$build/tests/lion/mulligan_lion.so
lines='[optimizer.matrices]
plugin = "lion"
lr = 0.001'
run_variant "the out-of-tree plugin, found by --plugin-path" "$lines" --plugin-path "$(dirname "$lion")"
check_contains "result.json names it" "lion" "$(cat runs/variant/result.json)"
run_variant "the out-of-tree plugin, by the path in the TOML" "$lines
path = \"$lion\""
MULLIGAN_PLUGIN_PATH=$(dirname "$lion") run_variant "the out-of-tree plugin, found by MULLIGAN_PLUGIN_PATH" "$lines"
check_refused "without a path it is not found" 2 "'lion'" train base.toml --set run.directory=runs/none \
  --set optimizer.matrices.plugin=lion --set optimizer.matrices.lr=0.001
check_true "the example is one file of at most 150 lines" "$(wc -l <"$root/plugins/example/lion.cpp") <= 150"
