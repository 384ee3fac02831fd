#!/usr/bin/env bash
# A run on text under a transform, caseops: scores count original bytes, and texts that a user gives or reads are original.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

# Text of one rule, which a tiny model learns by heart in a few steps.
mkdir corpus
for document in {1..60}; do
  for ((i = 0; i < 40 + document; ++i)); do printf 'NASA iPhone '; done >"corpus/$document.txt"
done
check "prepare" "$mulligan" prepare corpus --out data --vocab-size 280 --validation-documents 4 --text-transform caseops
small_config "$work/data" >small.toml
check "train" "$mulligan" train small.toml --set model.vocabulary=280 --set train.steps=60
run=runs/small
original=$(python3 -c '
import json
print(sum(len(json.loads(line)["text"].encode()) for line in open("data/validation.jsonl")))')
check_equal "the score's bytes are those of the original text" "$original" "$(json $run/result.json val_bytes)"

repeated="NASA iPhone NASA iPhone NASA iPhone NASA"
see "generate" 0 "$mulligan" generate $run --prompt "$repeated" --max-tokens 24 --temperature 0 2>generate.err
check_contains "a prompt with capitals is continued in capitals" "$repeated iPhone NASA iPhone" "$seen"

# The right choice differs from the wrong one in its capitals alone.
python3 - "$repeated" <<'END'
import json, sys
with open("questions.jsonl", "w") as file:
    for i in range(8):
        file.write(json.dumps({"question": sys.argv[1], "choices": ["iphone", "iPhone", "IPHONE"], "answer": 1}) + "\n")
END
check "calibrate" "$mulligan" probe calibration $run --tokens 0 --questions questions.jsonl --items items.jsonl --json figures.json
check_equal "questions are read under the transform" 8 "$(grep -c '"choice":1,"answer":1' items.jsonl)"
