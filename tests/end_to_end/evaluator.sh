#!/usr/bin/env bash
# mulligan_evaluate, built of the counted files alone, gives the scores of `mulligan eval` and `mulligan ttt`: plain, with
# adapters, with a score transform and a trained base model, and by two ranks.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-documents 4
record_config "$work/data" >small.toml
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
unpacks() { # unpacks FOLDER
  check "$1: the documented command unpacks them" bash -c "zcat $1/unpack.cpp.gz | g++ -std=c++20 -O2 -x c++ - -o unpack &&
    ./unpack $1/evaluation.pack $1"
}
builds() { cmake -S "$1/launch/evaluator" -B "$2" && cmake --build "$2" -j2; } # builds CODE FOLDER
for folder in code more_code; do
  check_equal "$folder: the counted files" "evaluation.pack unpack.cpp.gz" "$(find $folder -type f -printf '%f\n' | LC_ALL=C sort | xargs)"
  unpacks $folder
done
check_refused "a folder that is there" 3 "exists already" quantize runs/small --dry-run --config small.toml --source "$root" --code code
check_equal "every counted file of the smaller evaluation is in the larger one, but for what stands for a transform" \
  "./launch/evaluator/replaced_transform.cpp" \
  "$(comm -23 <(cd code && find . -type f | LC_ALL=C sort) <(cd more_code && find . -type f | LC_ALL=C sort))"

# The package has no keys.cpp, so an element reads its keys in its header.
check_equal "elements read their keys in their headers" "" "$(grep -L '^inline Config config_of' "$root"/framework/model/elements/*/config.h)"

if [[ -n ${MULLIGAN_LONG_TESTS:-} ]]; then
  check "the target builds it" cmake --build "$build" --target mulligan_evaluate
  if [[ ! -e $(sed -n 's/^MULLIGAN_CUDA_INCLUDE:[A-Z]*=//p' "$build/CMakeCache.txt")/cublasLt.h ]]; then
    echo "skipped - the records on cuda (cublasLt.h is not here)"
  else
    for record in pr1886 2014 2135; do
      check "$record: the counted files" "$mulligan" quantize "$root/configs/records/$record.toml" --dry-run --set backend.plugin=cuda \
        --source "$root" --code $record
      unpacks $record
      check "$record on cuda links" builds $record $record/built
    done
  fi
fi
[[ $build/bin/mulligan_evaluate -nt $mulligan ]] || {
  echo "skipped - scores of the evaluator (minutes; tests/run --long, or build the target mulligan_evaluate)"
  finish
}
evaluator=$work/mulligan_evaluate # a name that the processes of no other script have
cp "$build/bin/mulligan_evaluate" "$evaluator"
evaluate() { "$evaluator" "$@" data/tokenizer.model data/fineweb_val_*.bin; } # evaluate [--plain] ARTIFACT
for artifact in runs/small/artifact.mulligan more.mulligan; do
  for ranks in 1 2; do
    "$mulligan" launch --nproc-per-node $ranks -- ttt "$artifact" --output adapted >/dev/null
    sed -n '/"with_ttt"/,/}/p' adapted/ttt_result.json >part.json
    seen=$(evaluate --ranks $ranks "$artifact")
    for number in val_bpb loss_sum_nats tokens bytes; do
      check_contains "$artifact, $ranks ranks: $number of test-time training" " $(json part.json $number) " " ${seen//loss_nats/loss_sum_nats} "
    done
    rm -r adapted
  done
done
for words in "--ranks 2x" "--ranks 0" "--ranks 65" "--ranks 2 --plain" "--plain --ranks 2"; do
  seen=$(evaluate $words more.mulligan 2>&1)
  check_equal "$words is refused" "2 mulligan_evaluate: usage" "$? ${seen:0:24}"
done
kill_a_rank() { # as soon as there are three
  for _ in $(seq 1000); do
    [[ $(pgrep -cf "$evaluator --ranks 3") != 3 ]] || break
    sleep 0.01
  done
  pkill -KILL -nf "$evaluator --ranks 3"
}
kill_a_rank &
check_contains "a rank that ends ends the others" "another rank has ended" "$(evaluate --ranks 3 more.mulligan 2>&1)"
check_equal "and none is left" "" "$(pgrep -f "$evaluator")"
# Damaged artifacts: their checksum is put right, so that what follows it is read.
cat >mutate.py <<'PYTHON'
import hashlib, random, subprocess, sys
count, sound, data = int(sys.argv[1]), open(sys.argv[2], "rb").read(), sys.argv[3:]
rounds = random.Random(5)
failed = 0
for case in range(count):
    bad = bytearray(sound)
    for _ in range(rounds.randint(1, 3)):
        at = rounds.randrange(rounds.choice([8, 52]), rounds.choice([min(len(bad), 3000), len(bad)]))
        bad[at:at + rounds.choice([1, 1, 4])] = rounds.choice([bytes([rounds.randrange(256)]), b"", b"9", b"-1,"])
    bad[20:52] = hashlib.sha256(bad[:20] + bad[52:]).digest()
    open("bad.mulligan", "wb").write(bad)
    done = subprocess.run(["./mulligan_evaluate", "--plain", "bad.mulligan"] + data, capture_output=True, text=True, timeout=300)
    lines = done.stderr.strip().splitlines()
    if not (done.returncode == 0 or done.returncode in (2, 3, 4, 5) and len(lines) == 1):
        failed += 1
        print(case, done.returncode, lines[:3])
print(failed, "of", count)
PYTHON
damaged=$(amount 100 1000)
check_contains "$damaged damaged artifacts: a score or one sentence" "0 of $damaged" \
  "$(python3 mutate.py "$damaged" runs/small/artifact.mulligan data/tokenizer.model data/fineweb_val_*.bin)"
plain=$(evaluate --plain runs/small/artifact.mulligan)
check_contains "without adapters" "val_bpb $(cut -d' ' -f2 <<<"$plain" | xargs printf '%.5f')" \
  "$("$mulligan" eval runs/small/artifact.mulligan)"
finish
