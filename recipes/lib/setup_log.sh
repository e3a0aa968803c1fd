# shellcheck shell=bash
# Sourced by setup_env.sh: one line a step on the screen, everything else in a log.
# Needs: LOG.

# The screen, also for a message that comes while a step's output goes to the log.
exec 3>&2

# die MESSAGE: the one line that says what is wrong and what to do.
die() {
  echo "error: $*" >&3
  exit 1
}

# Bash runs this once the command in the foreground has ended, which the same Ctrl-C did.
trap 'echo >&3; die "interrupted; run the same command again: it goes on from here"' INT TERM

# why_failed: a known cause read from the log, as advice; nothing when unknown.
why_failed() {
  if grep -qi "no space left" "$LOG"; then
    echo "the disk is full: free some space (TMPDIR moves pip's temporary files)"
  elif grep -qiE "name resolution|connection (error|refused|broken|timed)|max retries|timed out|proxyerror" "$LOG"; then
    echo "the package index cannot be reached: check the network (or PIP_INDEX_URL, PIP_PROXY)"
  elif grep -qiE "no matching distribution|could not find a version" "$LOG"; then
    echo "the package index lacks a pinned version for this Python: Python 3.11 is the tested one"
  fi
}

# step LABEL COMMAND...: runs it with its output in the log; seconds count up on a terminal.
# The command runs in the foreground, so that Ctrl-C ends it too.
step() {
  local label=$1 started=$SECONDS ticker=
  shift
  printf '\n== %s: %s\n' "$label" "$*" >>"$LOG"
  if [[ -t 1 ]]; then tick "$label" & ticker=$!; fi
  "$@" >>"$LOG" 2>&1 </dev/null || fail_step "$label" "$ticker"
  stop_tick "$ticker"
  printf '  %-36s %4ds\n' "$label" $((SECONDS - started))
}

# tick LABEL: counts seconds for as long as the script lives.
tick() {
  local started=$SECONDS
  while kill -0 $$ 2>/dev/null; do
    printf '\r  %-36s %4ds ...' "$1" $((SECONDS - started))
    sleep 1
  done
}

stop_tick() {
  if [[ -n $1 ]]; then
    kill "$1" && wait "$1" 2>/dev/null || true
    printf '\r'
  fi
}

# fail_step LABEL TICKER
fail_step() {
  stop_tick "$2"
  echo >&2
  tail -n 15 "$LOG" >&2
  local why
  why=$(why_failed)
  die "step '$1' failed: ${why:-see the lines above}; full log: $LOG; 'make setup' goes on from here"
}
