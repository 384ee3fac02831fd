# If the tests are started with ignored signals (nohup: SIGHUP), every process below ignores them, too, and a shell cannot undo
# that. So the script starts anew with the usual signals. Source this file before anything that must not happen twice.
if [[ ${MULLIGAN_USUAL_SIGNALS:-} != "$$" ]]; then
  MULLIGAN_USUAL_SIGNALS=$$ exec env --default-signal=HUP,INT,QUIT,TERM,XCPU,ALRM,USR1,USR2 "$BASH" "$0" "$@"
fi
