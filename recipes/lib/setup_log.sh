# shellcheck shell=bash
# setup_env.sh sources this file. It prints one line per step on the screen and writes everything else to $LOG.

# File descriptor 3 is the screen, for messages while the output of a step goes to the log.
exec 3>&2

# die MESSAGE: print what is wrong and what to do, then exit.
die() {
  echo "error: $*" >&3
  exit 1
}

# Bash runs this after the command in the foreground has ended; Ctrl-C ends that command too.
trap 'echo >&3; die "interrupted. Run the same command again to continue."' INT TERM

# why_failed: search the log for a known cause, and print it with advice; print nothing if the cause is unknown.
why_failed() {
  if grep -qi "no space left" "$LOG"; then
    echo "the disk is full. Free some space (TMPDIR moves pip's temporary files)"
  elif grep -qiE "name resolution|connection (error|refused|broken|timed)|max retries|timed out|proxyerror" "$LOG"; then
    echo "the package index cannot be reached. Check the network, PIP_INDEX_URL and PIP_PROXY"
  elif grep -qiE "no matching distribution|could not find a version" "$LOG"; then
    echo "the package index has no pinned version for this Python. Use Python 3.12, which is tested"
  fi
}

# step LABEL COMMAND...: run the command with its output in the log; if it fails, exit.
step() { attempt "$@" || fail_step "$1"; }

# attempt LABEL COMMAND...: run the command with its output in the log, and print how long it took.
# The command runs in the foreground, so that Ctrl-C ends it too.
attempt() {
  local label=$1 started=$SECONDS status=0
  shift
  printf '\n== %s: %s\n' "$label" "$*" >>"$LOG"
  printf '  %-36s ' "$label"
  "$@" >>"$LOG" 2>&1 </dev/null || status=$?
  if ((status)); then
    echo failed
    return "$status"
  fi
  printf '%4ds\n' $((SECONDS - started))
}

# fail_step LABEL: show the end of the log and the cause of the failure, then exit.
fail_step() {
  tail -n 15 "$LOG" >&2
  local why
  why=$(why_failed)
  die "step '$1' failed: ${why:-see the lines above}. The full log is $LOG. Continue with 'make setup'."
}
