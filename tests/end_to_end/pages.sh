#!/usr/bin/env bash
# The command blocks of README and the tutorials do what the pages say, in their order, on what is built. Each block of shell commands
# has a mark at the end of the line of text before it:
#   <!-- run -->                             every command must succeed
#   <!-- run; optional: torchrun, srun -->   those that begin with one of these programs are skipped where it is not installed
#   <!-- not run: REASON -->
# Training takes a few seconds in place of minutes; under `tests/run --long` it takes as long as the pages say.
#   tests/end_to_end/pages.sh [PAGE...]      these pages alone
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"
pages=(README.md docs/own_text.md docs/write_an_optimiser.md docs/write_a_ttt_rule.md)
(($#)) && pages=("$@")
seconds=3

# A folder as the pages take it: a clone after the quickstart, with a folder of text. Twice the tiny text, once with other letters, is
# so much that `config init` chooses the vocabulary that own_text.md names.
mkdir -p clone/build/release/bin clone/my_texts && cd clone || exit 1
for entry in configs docs launch optimizers plugins tests; do ln -s "$root/$entry" $entry; done
for entry in "$build"/*; do [[ $entry == */bin ]] || ln -s "$entry" build/release/; done
tiny_corpus my_texts
for file in my_texts/*.txt; do tr 'A-Za-z' 'N-ZA-Mn-za-m' <"$file" >"${file%.txt}_rot13.txt"; done
if [[ -n ${MULLIGAN_LONG_TESTS:-} ]]; then
  ln -s "$mulligan" build/release/bin/mulligan
else
  cat >build/release/bin/mulligan <<SH
#!/usr/bin/env bash
shorter=()
case " \$* " in
  *" --dry-run "*) ;;
  " train "* | *" -- train "*) shorter=(--set train.budget_seconds=$seconds) ;;
  " sweep "*) shorter=(--set train.budget_seconds=$seconds --set ttt.document_fraction=0.2) ;;
esac
exec "$mulligan" "\$@" "\${shorter[@]}"
SH
  chmod +x build/release/bin/mulligan
fi
check "data as the quickstart makes it" build/release/bin/mulligan prepare my_texts --out data/quickstart --vocab-size 2048
check "a run as the quickstart makes it" build/release/bin/mulligan train configs/quickstart.toml
clone=$PWD
path=$PATH

# whole COMMAND: it does not go on in the next line.
whole() { [[ $1 != *\\$'\n' && -z $(bash -n <<<"$1" 2>&1) ]]; }
# run_command PLACE COMMAND OPTIONAL: in this shell, as a reader's.
run_command() {
  local what=$1 program=${2%%[[:space:]]*}
  [[ -n $program && $program != "#"* ]] || return
  what+=": $(head -n 1 <<<"$2" | sed 's/  *#.*//')"
  if [[ " ${3//,/ } " == *" $program "* ]] && ! command -v "$program" >/dev/null; then
    echo "skipped - $what ($program is not installed)"
  elif eval "$2" >"$work/command.log" 2>&1 </dev/null; then
    pass "$what"
  else
    flunk "$what" "exit code $?: $(tail -n 5 "$work/command.log")"
  fi
}
run_page() {
  local page=$1 number=0 mark="" fence="" command="" line
  PATH=$path
  cd "$clone" || exit 1
  while IFS= read -r line <&3; do
    number=$((number + 1))
    if [[ -z $fence ]]; then
      case $line in
        *'<!-- run -->' | *'<!-- run; optional: '*' -->' | *'<!-- not run: '*' -->') mark="<!--${line##*<!--}" ;;
        "") ;;
        '```sh'* | '```bash'* | '```console'*)
          fence=$number
          [[ -n $mark ]] || flunk "$page:$number: the block has a mark (see the head of tests/end_to_end/pages.sh)"
          ;;
        *) mark="" ;;
      esac
    elif [[ $line == '```' ]]; then
      [[ -z $command ]] || flunk "$page:$number: the last command is whole" "$command"
      fence="" mark="" command=""
    elif [[ $mark == '<!-- run'* ]]; then
      command+=$line$'\n'
      whole "$command" || continue
      run_command "$page:$number" "$command" "$(sed -n 's/.*optional: \(.*\) -->/\1/p' <<<"$mark")"
      command=""
    fi
  done 3<"$root/$page"
}
for page in "${pages[@]}"; do run_page "$page"; done
cd "$work" || exit 1
