#!/usr/bin/env bash
# mulligan probe calibration and consistency: next tokens and questions of a tiny trained model, runs against each other, what is refused.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-documents 4
record_config "$work/data" >small.toml
check "train" "$mulligan" train small.toml
run=runs/small

# Questions that text like the training's decides, and one that nothing does; one with a very long text.
python3 - <<'END'
import json
with open("questions.jsonl", "w") as file:
    for i in range(24):
        row = {"id": f"q{i}", "subject": "words" if i % 2 else "signs", "question": f"namespace mulligan {{ // number {i}",
               "choices": ["the", "qzxj qzxj qzxj"], "answer": 0 if i % 2 else "A"}
        file.write(json.dumps(row) + "\n")
    file.write(json.dumps({"question": "word " * 900, "choices": ["a", "b", "c"], "answer": "C"}) + "\n")
END
see "calibrate" 0 "$mulligan" probe calibration $run --tokens 700 --questions questions.jsonl --items all.jsonl --json figures.json 2>calibrate.err
check_contains "a question that is too long is told" "1 of 25 questions of 'questions.jsonl' are longer" "$seen$(cat calibrate.err)"
check_equal "as many tokens as asked for" 700 "$(json figures.json items)"
check_contains "subjects with their counts" "signs" "$seen"
check_equal "every answer is written" 725 "$(wc -l <all.jsonl)"
check_contains "the report has the diagram" "Reliability, questions.jsonl" "$(cat $run/report.html)"
# The same tokens' loss by mulligan eval, which sees all of them in the same rows: the whole set here.
"$mulligan" probe calibration $run --json whole.json --quiet >/dev/null
check_true "the mean loss of all tokens is that of eval" \
  "sqrt(($(json whole.json loss_nats) - $(json $run/result.json val_loss_nats)) ^ 2) < 1e-5"
check_true "words that are words are likelier" "$(sed -n '/"questions.jsonl"/,$p' figures.json >part.json && json part.json accuracy) > 0.9"
"$mulligan" probe calibration $run --tokens 0 --questions questions.jsonl --items packed.jsonl --set eval.packed_sequences=1 --quiet >/dev/null
"$mulligan" probe calibration $run --tokens 0 --questions questions.jsonl --items again.jsonl --quiet >/dev/null
see "compare" 0 "$mulligan" probe consistency again.jsonl packed.jsonl --json compared.json
check_equal "other packing, the same answers" 1.0 "$(json compared.json pairwise)"
check_contains "nothing parts them" "no item differs" "$seen"
"$mulligan" train small.toml --set run.seed=2 --set run.directory=runs/other --quiet >/dev/null
"$mulligan" probe calibration runs/other --tokens 700 --items other.jsonl --quiet >/dev/null
"$mulligan" probe calibration $run --tokens 700 --items first.jsonl --quiet >/dev/null
check_contains "two seeds" "first differing item" "$("$mulligan" probe consistency first.jsonl other.jsonl)"
check "an artifact" bash -c "'$mulligan' quantize $run >/dev/null && '$mulligan' probe calibration $run/artifact.mulligan --tokens 256"

check_refused "no such file" 3 "nowhere.jsonl" probe calibration $run --tokens 0 --questions nowhere.jsonl
check_refused "nothing to do" 2 "--tokens 0 without --questions" probe calibration $run --tokens 0
check_refused "no model" 2 "\`mulligan probe calibration\` lacks PATH" probe calibration
