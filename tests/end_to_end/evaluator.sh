#!/usr/bin/env bash
# mulligan_evaluate, built of the counted files alone, gives the scores of `mulligan eval` and `mulligan ttt`: plain, with
# adapters, and with a score transform and a trained base model.
# shellcheck source=tests/end_to_end/cli_checks.bash
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_corpus corpus
"$mulligan" prepare corpus --out data --vocab-size 512 --validation-documents 4 >/dev/null
{ small_config "$work/data" && record_sections; } >small.toml
{
  sed 's|^document_fraction = .*|&\nprefix_documents = 2\nphases = 1|' small.toml
  cat <<'TOML'
[ttt.transform]
plugin = "ngram_tilt"
text_order = "queue"
[ttt.base]
plugin = "global_sgd"
chunk_tokens = 512
[ttt.base.optimizer]
plugin = "sgd"
TOML
} >more.toml
"$mulligan" train small.toml >/dev/null
check "the artifact" "$mulligan" quantize runs/small --source "$root" --code code
check "an artifact with everything" "$mulligan" quantize runs/small --config more.toml --output more.mulligan --source "$root" --code more_code
for folder in code more_code; do
  check_equal "$folder: the counted files" "evaluation.pack unpack.cpp.gz" "$(find $folder -type f -printf '%f\n' | LC_ALL=C sort | xargs)"
  check "$folder: the documented command unpacks them" bash -c "zcat $folder/unpack.cpp.gz | g++ -std=c++20 -O2 -x c++ - -o unpack &&
    ./unpack $folder/evaluation.pack $folder"
done
check_refused "a folder that is there" 3 "exists already" quantize runs/small --dry-run --config small.toml --source "$root" --code code
check_equal "every counted file of the smaller evaluation is in the larger one, but for the program's list of plugins" "" \
  "$(comm -23 <(cd code && find . -type f | LC_ALL=C sort) <(cd more_code && find . -type f | LC_ALL=C sort))"

if [[ -z ${MULLIGAN_LONG_TESTS:-} ]]; then
  echo "skipped - building the counted files (minutes; tests/run --long)"
  finish
fi
check "the documented command builds it" bash -c "cmake -S more_code/launch/evaluator -B built && cmake --build built -j2"
evaluate() { built/mulligan_evaluate "$@" data/tokenizer.model data/fineweb_val_*.bin; } # evaluate [--plain] ARTIFACT
for artifact in runs/small/artifact.mulligan more.mulligan; do
  "$mulligan" ttt "$artifact" --output adapted >/dev/null
  sed -n '/"with_ttt"/,/}/p' adapted/ttt_result.json >part.json
  seen=$(evaluate "$artifact")
  for number in val_bpb loss_sum_nats tokens bytes; do
    check_contains "$artifact: $number of test-time training" " $(json part.json $number) " " ${seen//loss_nats/loss_sum_nats} "
  done
  rm -r adapted
done
plain=$(evaluate --plain runs/small/artifact.mulligan)
check_contains "without adapters" "val_bpb $(cut -d' ' -f2 <<<"$plain" | xargs printf '%.5f')" \
  "$("$mulligan" eval runs/small/artifact.mulligan)"
finish
