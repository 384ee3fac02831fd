#!/usr/bin/env bash
# The command prepare next to other files on a disk.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

# A pipe or a device in place of a file: refused at once, never read to an end that does not come.
mkdir pipe device
mkfifo pipe/manifest.json
ln -s /dev/zero device/manifest.json
check_refused "prepare --check: a pipe as manifest" 3 "regular file" prepare --check pipe
check_refused "prepare --check: a device as manifest" 3 "regular file" prepare --check device
mkfifo settings.toml
check_refused "a pipe as configuration" 2 "settings.toml" config check settings.toml
ln -s loop.toml loop.toml
check_refused "links in a circle as configuration" 2 "loop.toml" config check loop.toml
truncate -s 300G huge.toml
check_refused "a configuration of 300 GiB" 2 "more than" config check huge.toml
# Text is kept as it is: the validation text is the file that was given, whatever it holds.
mkdir -p own
tiny_corpus training
check_equal "the tests' text is what it always was, whatever awk writes it" 1b7b57dabb654ef708f734c7ae37dbb4b583fd95141a61e556a3eeefa261ff73 \
  "$(cat training/*.txt | sha256sum | cut -c1-64)"
for i in $(seq 60); do printf 'def f%d(x):\r\n\treturn  x * %d   # \303\251\r\n\r\n\r\n' "$i" "$i" >"training/$i.py"; done
head -c 20000 /dev/urandom >own/noise
printf '   two\n\n\n\n  lines \342\226\201 \000 \n' >>own/noise
check "prepare: random bytes" "$mulligan" prepare training --validation own --out kept --vocab-size 512
check "its validation text is the file to the byte" cmp own/noise kept/validation.txt
# A vocabulary that the text cannot have: the sentence gives the number that it can.
mkdir digits
for i in 1 2; do seq $((i * 70000)) $((i * 70000 + 9000)) | tr -d '\n' >digits/$i.txt; done
check_refused "more pieces than the text has words for" 3 "different words for 271 pieces at most; ask" prepare digits --out refused --vocab-size 512
check_refused "fewer pieces than characters" 3 "alone are 271 pieces; ask" prepare digits --out refused --vocab-size 260
check "as many as it says: digits without a blank" "$mulligan" prepare digits --out digits_data --vocab-size 271
check "prepare --check" "$mulligan" prepare --check kept
check_equal "the manifest says that text was kept" true "$(json kept/manifest.json kept)"
"$mulligan" prepare training own --out listed --vocab-size 512 --clean >cleaned.out 2>&1
check_contains "cleaning is announced" "documents cleaned" "$(cat cleaned.out)"
check_contains "binary documents are listed" "NUL byte" "$(cat listed/changes.jsonl)"

# Symbols that are taken out: of the training text alone, unless asked otherwise; the manifest says which.
check "prepare --ablate" "$mulligan" prepare training --validation own --out ablated --vocab-size 512 --ablate digits,operators
check "its shards agree with the manifest" "$mulligan" prepare --check ablated
check_contains "changed documents are listed" "ablated (remove)" "$(cat ablated/changes.jsonl)"
check_refused "a probability above 1" 2 "from 0 to 1" prepare training --out refused --ablate digits --ablate-probability 1.5

# Sentences.
truncate -s 100G endless.jsonl
check_refused "JSON Lines: a line of 100 GB" 3 "endless.jsonl:1: the line has more than" prepare endless.jsonl --out keys
check_refused "prepare --check: a name of 300 characters" 3 "File name too long" prepare --check "$(printf 'x%.0s' $(seq 300))"
check_refused "an input that is a link in a circle" 3 "symbolic links" prepare loop.toml --out keys

# An existing data set is replaced as a whole and only when asked to.
check_refused "an existing data set" 2 "--overwrite" prepare training --validation own --out kept
check "it is as it was" "$mulligan" prepare --check kept
before=$(cksum kept/*)
after="" # of the set that would replace it
for moment in 0.05 0.1 0.2 0.4 0.6 0.8; do
  begin killed prepare training --validation own --out kept --vocab-size 520 --overwrite
  sleep $moment
  end_by KILL 2>/dev/null
  [[ "$("$mulligan" prepare --check kept 2>&1)" == *"agree with the manifest"* ]] || flunk "killed after $moment s: the set is whole"
  now=$(cksum kept/*)
  [[ "$now" == "$before" ]] || { : "${after:=$now}"; check_equal "killed after $moment s: the old set or the new" "$after" "$now"; }
done
pass "killed preparations leave the old set or the new one"
mkdir "kept.preparing.tmp.$process.6.0.$(uname -n | tr -c 'A-Za-z0-9\n-' _)" # as if killed while it removes the old set
check "prepare after them" "$mulligan" prepare training --validation own --out kept --vocab-size 520 --overwrite
check_equal "and nothing else is left" "" "$(find . -maxdepth 1 -name 'kept.*')"
check_equal "the new set" 520 "$(json kept/manifest.json vocabulary)"
