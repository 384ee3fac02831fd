# What whoever started the tests ignores (nohup: SIGHUP), every process below would ignore, too, and a shell cannot take back: the
# script starts anew with the usual signals. Source it before what must not happen twice.
if [[ ${MULLIGAN_USUAL_SIGNALS:-} != "$$" ]]; then
  MULLIGAN_USUAL_SIGNALS=$$ exec env --default-signal=HUP,INT,QUIT,TERM,XCPU,ALRM,USR1,USR2 "$BASH" "$0" "$@"
fi
