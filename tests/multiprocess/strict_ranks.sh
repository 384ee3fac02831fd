#!/usr/bin/env bash
# Strict rules ask every rank: code that was loaded before the program on one rank that is not the first ends all of
# them without a score.
# shellcheck source=tests/end_to_end/cli_checks.bash
source "$(dirname "${BASH_SOURCE[0]}")/../end_to_end/cli_checks.bash"
# shellcheck source=tests/multiprocess/ranks.bash
source "$root/tests/multiprocess/ranks.bash"

flawed=$build/tests/flawed_plugins
tiny_corpus corpus
check "prepare" "$mulligan" prepare corpus --out data --vocab-size 512 --validation-fraction 0.05
{
  small_config "$work/data"
  record_sections | sed "s|^document_fraction = .*|document_fraction = 1.0|"
  printf '[ledger]\nrules = "strict"\ntrain_seconds = 600\n'
} >strict.toml

# pair NAME VARIABLES ARGUMENT...: two ranks of a command, the first with the arguments in first[], the second with these variables
# and the arguments in second[]; output in
# NAME.0 and NAME.1, exit codes in codes[].
first=()
second=()
pair() {
  local name=$1 variables port number rank
  read -ra variables <<<"$2"
  shift 2
  port=$(free_port)
  be_rank 0 2 "$port"
  "${rank[@]}" "$@" "${first[@]}" >"$name.0" 2>&1 &
  processes=($!)
  be_rank 1 2 "$port"
  env "${variables[@]}" "${rank[@]}" "$@" "${second[@]}" >"$name.1" 2>&1 &
  processes+=($!)
  end_ranks
}
# refused WHAT NAME TEXT: both ranks have ended, each with its code and with the text; nothing was scored.
refused() {
  check_equal "$1: exit codes" "5 1" "${codes[*]}"
  check_contains "$1: rank 0 names the other" "rank 1 (" "$(tail -n 1 "$2.0")"
  for number in 0 1; do check_contains "$1: rank $number says why" "$3" "$(tail -n 1 "$2.$number")"; done
}

pair honest "A=b" train strict.toml --set run.directory=honest
check_equal "two honest ranks" "0 0" "${codes[*]}"
for variable in LD_PRELOAD LD_AUDIT; do
  library=$flawed/mulligan_flawed_loss.so
  pair $variable "$variable=$library" train strict.toml --set run.directory=$variable --set train.steps=2
  refused "$variable on the second rank" $variable "$variable is '$flawed"
  check_contains "$variable: the first rank tells it before training" "warning: rank 1 (" "$(cat $variable.0)"
  check_equal "$variable: there is no result" "" "$(find $variable -name result.json)"
done
pair open "LD_PRELOAD=$flawed/mulligan_flawed_loss.so" train strict.toml --set ledger.rules=open --set run.directory=open --set train.steps=2
check_equal "open rules take it" "0 0" "${codes[*]}"

# What computes a share of a score.
pair eval "LD_PRELOAD=$flawed/mulligan_flawed_loss.so" eval honest
refused "an evaluation" eval "LD_PRELOAD is"
check_equal "is booked nowhere" "" "$(cat honest/evaluations.jsonl 2>none)"

finish
