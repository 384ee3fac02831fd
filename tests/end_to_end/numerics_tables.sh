#!/usr/bin/env bash
# The numerics lab's tables: kept whole when an experiment prints them, drawn as one page (mulligan report --tables), by
# configs/numerics/run of every experiment there is.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

cp -r "$root/configs" .
keep=configs/numerics/keep_tables

# Keeping what was printed.
check_equal "what is kept is shown" "| a |" "$("$keep" runs/a printf '| a |\n')"
check_equal "and kept" "| a |" "$(cat runs/a/tables.md)"
check_equal "a failure is one" 3 "$("$keep" runs/a bash -c 'echo "| half |"; exit 3' >half.md; echo $?)"
check_equal "it has been shown" "| half |" "$(cat half.md)"
check_equal "but the tables are what they were, and nothing else is there" "tables.md: | a |" \
  "$(ls -A runs/a): $(cat runs/a/tables.md)"
"$keep" runs/b_quick echo "| b |" >quick.md
check_contains "a rehearsal says so" "these figures mean nothing" "$(cat runs/b_quick/tables.md)"
bash -c "source $keep; printing() { echo '| x |'; false; echo '| y |'; }; keep_tables runs/c printing" >half.md
check_equal "a function that stops in its middle fails" "1, | x |" "$?, $(cat half.md)"
check_equal "and keeps nothing" "" "$(ls -A runs/c)"

# The page.
rm -r runs
mkdir -p runs/one runs/two runs/none runs/text
printf 'Seen.\n\n| <b>head | right |\n|---|---:|\n| x\\|y | 1 |\n' >runs/one/tables.md
printf '| second |\n|---|\n' >runs/two/tables.md
echo "no table" >runs/text/tables.md
check_refused "a file without a table" 3 "runs/text/tables.md" report --tables runs --output page.html
rm -r runs/text
check "a page" "$mulligan" report --tables runs --output page.html
for seen in "<h2>one</h2>" "<h2>two</h2>" "<p>Seen.</p>" "&lt;b&gt;head" ">x|y</td>" '>1</td>'; do
  check_contains "the page has $seen" "$seen" "$(cat page.html)"
done
check_true "it asks for no other file" "$(grep -cE '(src|href)="[^#]' page.html) == 0"
before=$(sha256sum page.html)
check_refused "a page that exists" 2 "--overwrite" report --tables runs/two --output page.html
check_refused "no folder" 3 "cannot be read" report --tables nowhere --output page.html --overwrite
check_equal "refusals leave it alone" "$before" "$(sha256sum page.html)"
check "--overwrite" "$mulligan" report --tables runs/two --output page.html --overwrite
check_true "one folder alone" "$(grep -c '<h2>' page.html) == 1"
check_refused "neither run nor tables" 2 "run directories" report
check_refused "both" 2 "name one" report runs/one --tables runs --output other.html
check_refused "no page named" 2 "--output" report --tables runs
check_refused "--overwrite without tables" 2 "--tables" report runs/one --overwrite

# All experiments: the real ones are run elsewhere (cli_ensemble.sh, cli_probe.sh, ...); these stand in for them.
rm -r runs
for experiment in configs/numerics/*/run; do
  name=$(basename "$(dirname "$experiment")")
  printf '#!/usr/bin/env bash\nset -euo pipefail\n[[ ! -e broken_%s ]]\nconfigs/numerics/keep_tables "runs/numerics/%s${1:+_quick}" printf "| of %s |\\n|---|\\n"\n' \
    "$name" "$name" "$name" >"$experiment"
done
export MULLIGAN=$mulligan
touch broken_layercast
configs/numerics/run --quick >all.md 2>all.err
check_equal "an experiment that fails fails all" 1 $?
check_contains "and is named" "no page: layercast;" "$(cat all.err)"
check_contains "the others are run" "| of task_vectors |" "$(cat all.md)"
check "no page of the rest" test ! -e runs/numerics/tables_quick.html
rm broken_layercast
check "all experiments" configs/numerics/run --quick
check_equal "one section each" "$(find configs/numerics -mindepth 1 -type d | wc -l)" "$(grep -c '<h2>' runs/numerics/tables_quick.html)"
check "again" configs/numerics/run --quick
check "not as a rehearsal" configs/numerics/run
check_true "whose page has none of it" "$(grep -c 'mean nothing' runs/numerics/tables.html) == 0"
check_equal "unknown arguments" 2 "$(configs/numerics/run --quik 2>/dev/null; echo $?)"
