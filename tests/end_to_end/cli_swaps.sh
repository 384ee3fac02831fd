#!/usr/bin/env bash
# Swapping plugins takes at most five lines of TOML: every loss with every optimiser and every schedule trains, and so
# does an optimiser built outside of the tree.
# shellcheck source=tests/end_to_end/cli_checks.bash
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_corpus corpus
"$mulligan" prepare corpus --out data --vocab-size 384 --validation-fraction 0.1 >/dev/null
small_config "$work/data" | sed -e 's/^vocabulary = .*/vocabulary = 384/' -e 's/^steps = .*/steps = 12/' >base.toml

declare -A loss=([softcap_ce]='[loss]
plugin = "softcap_ce"' [cross_entropy]='[loss]
plugin = "cross_entropy"')
declare -A optimizer=([muon]='[optimizer.matrices]
plugin = "muon"
lr = 0.02
momentum = 0.9' [adamw]='[optimizer.matrices]
plugin = "adamw"
lr = 0.003
weight_decay = 0.1' [sgd]='[optimizer.matrices]
plugin = "sgd"
lr = 0.05
momentum = 0.9')
declare -A schedule=([warmdown]='[schedule]
plugin = "warmdown"
fraction = 0.5' [cosine]='[schedule]
plugin = "cosine"
min_factor = 0.1' [sgdr]='[schedule]
plugin = "sgdr"
period = 4.0
period_multiplier = 2.0
by = "step"' [constant]='[schedule]
plugin = "constant"')

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

# The short form takes every second combination, so that any two of them meet; all train in Train.EveryCombinationOfPluginsTrains,
# and here in the long form.
number=0
for o in "${!optimizer[@]}"; do
  number=$((number + 1))
  for s in "${!schedule[@]}"; do
    for l in "${!loss[@]}"; do
      number=$((number + 1))
      ((number % 2 == 0)) && [[ -z ${MULLIGAN_LONG_TESTS:-} ]] && continue
      run_variant "$l, $o, $s" "${loss[$l]}
${optimizer[$o]}
${schedule[$s]}"
    done
    number=$((number + 1))
  done
done
longest=$(for swap in "${loss[@]}" "${optimizer[@]}" "${schedule[@]}"; do wc -l <<<"$swap"; done | sort -n | tail -n 1)
check_true "every swap takes at most five lines" "$longest <= 5"

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
finish
