#!/usr/bin/env bash
# Test-time training whose plugins know more than they are handed: a memory of earlier answers, the file that is scored,
# a socket, what the process that checks is told meanwhile. Such scores are void, or the plugin finds nothing. The plugins
# are tests/unit/ttt_plugins/remembering.cpp, reading.cpp, two_faced.cpp and telling.cpp. Honest plugins score as ever, on
# their own and by several lanes.
# shellcheck source=tests/end_to_end/cli_checks.bash
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_corpus corpus
check "prepare" "$mulligan" prepare corpus --out data --vocab-size 512 --validation-documents 3
{
  small_config "$work/data" | sed -e 's/^steps = .*/steps = 8/'
  record_sections
} | sed -e 's/document_fraction = .*/document_fraction = 1.0/' >own.toml
check "train a run" "$mulligan" train own.toml --set run.directory=honest --set run.threads=1
text=$(echo "$work"/data/fineweb_val_*.bin)

score() { grep -o 'with test-time training:    val_bpb [0-9.]*' | grep -o '[0-9.]*$'; }
ttt() { "$mulligan" ttt honest --set run.threads=1 "$@"; }
json() { python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]: value = value[key]
print(value)' "$@"; }

# Whether this kernel confines (else only the checks are left).
ttt --output plain >plain.out 2>plain.err
check_equal "honest adapters: exit code" 0 $?
honest=$(score <plain.out)
check_equal "checked by another process" own "$(json plain/ttt_result.json causality_check process)"
check_true "the rate that is found is stated" "$(json plain/ttt_result.json causality_check found_with_99_percent one_score_in) >= 20"
confined=$(json plain/ttt_result.json causality_check confined scoring no_files)
check_equal "the log says so" 1 "$(grep -c 'by a process that never had them' plain.out)"

sed -e '/^rank = 4/d; /^alpha = 4.0/d' -e "s#plugin = \"doc_lora\"#plugin = \"remembering\"\npath = \"$build/tests/ttt_plugins/mulligan_remembering.so\"#" \
  own.toml >remembering.toml
remembering() {
  ttt --config remembering.toml --set ttt.adapters.how="$1" --set ttt.adapters.text="${text#/}" --output "$1" "${@:2}" >"$1.out" 2>"$1.err"
}
# void HOW [OPTION...]: the run is void, without a score.
void() {
  remembering "$@"
  check_equal "$*: exit code" 1 $?
  check_contains "$*: the run is void" "the run is void" "$(cat "$1.err")"
  check_equal "$*: the result has no score" True "$(json "$1/ttt_result.json" void)"
}
remembering not_at_all
check_equal "its own kernel alone: exit code" 0 $?
idle=$(score <not_at_all.out)
void memory
void rarely --audit full
remembering not_at_all --audit full
check_equal "a full audit of an honest kernel: exit code" 0 $?
check_equal "and the same score" "$idle" "$(score <not_at_all.out)"
check_equal "which is noted" full "$(json not_at_all/ttt_result.json causality_check audit)"
remembering memory --audit same-process
check_equal "in one process a memory is not seen" 0 $?
check_equal "which is noted, too" same "$(json memory/ttt_result.json causality_check process)"
check_refused "strict rules want the other process" 2 "--audit same-process" ttt honest --output strict \
  --audit same-process --set ledger.rules=strict

# What reads finds nothing, whenever it looks; where the kernel cannot keep it from reading, only a score is missing.
for how in at_creation at_first_call through_proc by_thread socket; do
  remembering $how
  code=$?
  if [[ $confined == True ]]; then
    check_equal "$how: finds nothing" "0 $idle" "$code $(score <$how.out)"
  else
    echo "# no Landlock here: $how ended with $code"
  fi
done
MULLIGAN_TEST_READ=$text remembering at_loading
[[ $confined != True ]] || check_equal "at_loading: finds nothing" "$idle" "$(score <at_loading.out)"

# A transform that has the text.
printf '[ttt.transform]\nplugin = "reading"\npath = "%s"\n' "$build/tests/ttt_plugins/mulligan_reading.so" | cat own.toml - >reading.toml
for how in not_at_all at_creation at_opening through_proc at_loading; do
  MULLIGAN_TEST_READ=$text ttt --config reading.toml --set ttt.transform.how=$how --set ttt.transform.text="${text#/}" --output read_$how \
    >read.out 2>read.err
  code=$?
  if [[ $confined == True || $how == not_at_all ]]; then
    check_equal "a transform that reads, $how: gains nothing" "0 $honest" "$code $(score <read.out)"
  else
    check_equal "a transform that reads, $how: void" 1 $code
  fi
done

# A plugin that looks ahead where nobody checks, or tells the process that checks what to answer.
sed -e '/^rank = 4/d; /^alpha = 4.0/d' -e "s#plugin = \"doc_lora\"#plugin = \"two_faced\"\npath = \"$build/tests/ttt_plugins/mulligan_two_faced.so\"#" \
  own.toml >two_faced.toml
two_faced() {
  ttt --config two_faced.toml --set ttt.adapters.how="$1" --output "faces_$1" "${@:2}" >"$1.out" 2>"$1.err"
}
two_faced not_at_all
check_equal "a kernel that does nothing: exit code" 0 $?
idle_face=$(score <not_at_all.out)
for how in aware memory limits signals names; do
  two_faced $how
  code=$?
  if ((code == 0)); then # what it needs is refused: it behaves
    check_equal "$how: gains nothing" "$idle_face" "$(score <$how.out)"
  else
    check_contains "$how: the run is void" "the run is void" "$(cat $how.err)"
  fi
done
# More tokens than one message to the process that checks holds (32,768), of which a transform is told before their turn is scored.
# One narrow layer is enough: the number of tokens counts.
check "more validation documents" "$mulligan" prepare corpus --out data18 --vocab-size 512 --validation-documents 18
narrow=(-e "s#$work/data/#$work/data18/#; /^\[model.loop\]/,/^parallel_start/d; s/^layers = .*/layers = 1/; s/^width = .*/width = 16/"
  -e 's/^heads = .*/heads = 2/; s/^kv_heads = .*/kv_heads = 1/'
  -e 's/^context_tokens = .*/context_tokens = 512/; s/^chunk_tokens = .*/chunk_tokens = 512/; s/^batch_documents = .*/batch_documents = 6/')
sed "${narrow[@]}" own.toml >narrow.toml
check "a run with them" "$mulligan" train narrow.toml --set run.directory=honest18 --set run.threads=1
sed "${narrow[@]}" two_faced.toml >told.toml
printf '[ttt.transform]\nplugin = "telling"\npath = "%s"\n' "$build/tests/ttt_plugins/mulligan_telling.so" >>told.toml
codes=()
for how in not_at_all told; do # so few turns that each is checked
  "$mulligan" ttt honest18 --config told.toml --set run.threads=1 --set ttt.adapters.how=$how --output "told_$how" >$how.out 2>$how.err
  codes[${#codes[@]}]=$?
done
check_true "more tokens than one message holds, each turn checked" \
  "$(json told_not_at_all/ttt_result.json causality_check proposals) > 32768 && $(json told_not_at_all/ttt_result.json causality_check turns) >= 26"
check_equal "a transform that tells adapters what it was told: exit codes without and with" "0 1" "${codes[*]}"
check_contains "the run is void" "the run is void" "$(cat told.err)"
# A process that stays behind and writes its own result.
two_faced left_behind --set ttt.adapters.text="${work#/}/faces_left_behind/ttt_result.json"
check_equal "a plugin that starts a process: exit code" 0 $?
sleep 1
check_equal "the result is the run's" "" "$(grep forged faces_left_behind/ttt_result.json)"

# Data in a folder of the system, which plugins may read otherwise.
if [[ $confined == True && -w /dev/shm ]]; then
  shared=$(mktemp -d /dev/shm/mulligan_test.XXXXXX)
  trap 'rm -rf "$work" "$shared"' EXIT
  cp data/* "$shared"
  moved=(--set data.validation="$shared/fineweb_val_*.bin" --set data.tokenizer="$shared/tokenizer.model")
  ttt --config reading.toml "${moved[@]}" --set ttt.transform.how=at_creation --set ttt.transform.text="${shared#/}/${text##*/}" \
    --output read_shared >read.out 2>read.err
  check_equal "a transform that reads data in /dev/shm: gains nothing" "0 $honest" "$? $(score <read.out)"
  rm -rf "$shared"
fi
ttt --output data/within >within.out 2>within.err
check_equal "results among the data: exit code" 0 $?
cp data/*.bin data/*.model data/within
ttt --set data.validation="$work/data/within/fineweb_val_*.bin" --set data.tokenizer="$work/data/within/tokenizer.model" \
  --output data/within >within.out 2>within.err
check_contains "data among the results are said to be within reach" "the validation data, which lie in" "$(cat within.out within.err)"

# Honest transforms in every order, and lanes.
for order in queue document file; do
  printf '[ttt.transform]\nplugin = "ngram_tilt"\ntext_order = "%s"\n' $order | cat own.toml - >ngram.toml
  check "ngram_tilt in the order $order" "$mulligan" ttt honest --config ngram.toml --set run.threads=1 --output tilt_$order
  check_true "its proposals were made again" "$(json tilt_$order/ttt_result.json causality_check proposals) > 500"
done
check "two lanes" "$mulligan" ttt honest --set run.threads=1 --set ttt.lanes=2 --output lanes
printf '[ttt.base]\nplugin = "global_sgd"\nchunk_tokens = 512\n' | cat own.toml - |
  sed -e 's/^document_fraction = .*/prefix_documents = 2\nphases = 2/' >base.toml
check "a base model that is trained on the way" "$mulligan" ttt honest --config base.toml --set run.threads=1 --output base
finish
