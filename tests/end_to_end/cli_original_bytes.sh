#!/usr/bin/env bash
# Bits per byte of text that normalisation makes longer and shorter: train, eval, quantize and ttt under strict rules divide by the
# bytes of the documents, and their results state the rule and both figures.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

# Half of the words are followed by U+FDFA; NFKC makes 33 bytes of its 3.
python3 - <<'END'
import json, random
random.seed(4)
def word(): return "".join(random.choice("bdfgklmnprstvz") + random.choice("aeiou") for _ in range(random.randint(1, 3)))
with open("texts.jsonl", "w") as file:
    for document in range(400):
        words = [word() + ("\ufdfa" if random.random() < 0.5 else "") for _ in range(40)]
        file.write(json.dumps({"text": "  " + "   ".join(words) + "\n"}) + "\n")
END
see_all "prepare" 0 "$mulligan" prepare texts.jsonl --out data --normalization nmt_nfkc --vocab-size 512 --validation-documents 8
check_contains "it says what bits per byte are of" "note: the validation documents hold" "$seen"
check "prepare --check" "$mulligan" prepare --check data
read -r original spelled < <(python3 -c '
import json
side = json.load(open("data/manifest.json"))["validation"]
print(side["source_bytes"], side["bytes"])')
check_true "normalisation makes the text longer" "$spelled > 1.5 * $original"

record_config "$work/data" 1.0 >small.toml
strict=(--set ledger.rules=strict --set train.steps=2)
figures() { # FILE FIELDS...: of a JSON file, by a path with dots
  python3 -c '
import functools, json, sys
data = json.load(open(sys.argv[1]))
print(*[functools.reduce(lambda part, key: part[key], path.split("."), data) for path in sys.argv[2:]])' "$@"
}
run=runs/small
check "train under strict rules" "$mulligan" train small.toml "${strict[@]}"
check_equal "result.json: the rule, and the bytes by each" "original $original $original $spelled" \
  "$(figures $run/result.json byte_rule val_bytes by_byte_rule.original.bytes by_byte_rule.tokenizer.bytes)"
check_contains "the log has both" "bytes of the tokenizer's text" "$(cat $run/log.txt)"
report=$(tr -d , <$run/report.html) # numbers without their commas; an apostrophe is &#39;
check_contains "the report has both" "by $original bytes; tokenizer&#39;s text: " "$report"
check_contains "with their bytes" " by $spelled bytes." "$report"
check "quantize" "$mulligan" quantize $run --source "$root" --set ledger.rules=strict
check "ttt" "$mulligan" ttt $run/artifact.mulligan --output $run --set ledger.rules=strict
check_equal "ttt_result.json" "original $original $spelled original $original" \
  "$(figures $run/ttt_result.json with_ttt.byte_rule with_ttt.bytes with_ttt.by_byte_rule.tokenizer.bytes without_ttt.byte_rule without_ttt.bytes)"
for stage in "after quantisation" "after test-time training"; do
  check_equal "ledger.json: $stage" "$original $original $spelled" "$(python3 - "$run/ledger.json" "$stage" <<'END'
import json, sys
def scores(part):
    if isinstance(part, dict):
        for key, value in part.items():
            if key == sys.argv[2]:
                yield value
            else:
                yield from scores(value)
    elif isinstance(part, list):
        for value in part:
            yield from scores(value)
score = list(scores(json.load(open(sys.argv[1]))))[-1]
print(score["bytes"], *[score["by_byte_rule"][rule]["bytes"] for rule in ("original", "tokenizer")])
END
  )"
done
check "eval" "$mulligan" eval $run
check_equal "evaluations.jsonl" "original $original" "$(figures $run/evaluations.jsonl byte_rule val_bytes)"
see_all "eval by the tokenizer's text" 0 "$mulligan" eval $run --set 'data.byte_rule="tokenizer"'
check_contains "is divided by its bytes" "$spelled bytes)" "$seen"
check_contains "and says the original's" "$original bytes of the original text" "$seen"
check_equal "which is a trial that states its rule" "tokenizer $spelled" "$(figures $run/trials/eval-*.json score.byte_rule score.val_bytes)"
check "a contest's rule is accepted by strict rules, too" "$mulligan" train small.toml "${strict[@]}" --set 'data.byte_rule="tokenizer"' \
  --set run.directory=runs/contest
check_equal "and stated" "tokenizer $spelled" "$(figures runs/contest/result.json byte_rule val_bytes)"
check_refused "another rule" 2 "byte_rule" train small.toml --set 'data.byte_rule="characters"'
