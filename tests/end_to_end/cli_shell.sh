#!/usr/bin/env bash
# What a shell user finds: completion for bash and zsh and the manual page, made from the program's own declarations.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

PATH=$(dirname "$mulligan"):$PATH
mulligan completion bash >mulligan.bash
mulligan completion zsh >_mulligan
check "bash takes its script" bash -n mulligan.bash

# complete WORD...: what bash offers for the last word of the line `mulligan WORD...`, sorted, in one line.
complete_words() {
  bash -c '
    source ./mulligan.bash
    COMP_WORDS=(mulligan "$@")
    COMP_CWORD=$#
    _mulligan
    printf "%s\n" "${COMPREPLY[@]}"' bash "$@" 2>/dev/null | LC_ALL=C sort | tr '\n' ' '
}
check_equal "a command" "train " "$(complete_words tra)"
check_equal "a command of a command" "diff docs " "$(complete_words config d)"
check_contains "every command" " quantize record report stats sweep train try " "$(complete_words '')"
check_equal "an option" "--overwrite " "$(complete_words train run.toml --ov)"
check_equal "of the command that was named, no value" "--dtype " "$(complete_words checkpoint export --out diff --dt)"
check_equal "a value among several, also behind =" "bf16 " "$(complete_words checkpoint export --dtype = b)"
check_equal "a key behind --set" "train.budget_seconds= " "$(complete_words train run.toml --set train.bu)"
check_equal "files are offered by bash itself" " " "$(complete_words train run.)"

if command -v zsh >/dev/null; then
  check "zsh takes its script" zsh -n _mulligan
  # zsh's own completion system, driven as its tests drive it: a pseudo-terminal in which Tab is pressed.
  cat >press_tab.zsh <<'ZSH'
zmodload zsh/zpty
zpty tab zsh -f -i
zpty -w tab "autoload -Uz compinit && compinit -u -d ./zcompdump; PS1='> '; source ./_mulligan; print re''ady"
zpty -r tab seen '*ready*'
zpty -n -w tab "mulligan train run.toml --overw"$'\t'
zpty -r tab option '*--overwrite*'
zpty -n -w tab "| mulligan checkpoint ver"$'\t'
zpty -r tab command '*verify*'
print -r -- $option $command
ZSH
  seen=$(TERM=dumb timeout 300 zsh -f press_tab.zsh 2>&1)
  check_contains "zsh completes an option" "--overwrite" "$seen"
  check_contains "zsh completes a subcommand" "verify" "$seen"
else
  echo "skipped - zsh's completion (zsh is not installed)"
fi

"$mulligan" completion man >mulligan.1
if command -v groff >/dev/null; then
  check_equal "groff finds no fault in the manual page" "" "$(groff -man -Tutf8 -ww -z mulligan.1 2>&1)"
  page=$(groff -man -Tutf8 -P -cbou mulligan.1)
  check_contains "it names every command" "mulligan checkpoint verify" "$page"
  check_contains "under the headings of the help" "COMMANDS - Look (configurations, plugins, runs)" "$page"
  check_contains "and its options with their defaults" "--validation-fraction" "$page"
  check_contains "and the exit codes" "bad configuration, command line or plugin" "$page"
else
  echo "skipped - the manual page by groff (groff is not installed)"
fi
