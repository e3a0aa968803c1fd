# shellcheck shell=bash
# Every run.sh sources this file. A recipe is a list of settings, then `options "$@"`, then steps from top to bottom.
# A step is skipped if it finished before with the same words, after the same steps. Training resumes by itself.
# docs/adding-a-recipe.md explains what a recipe uses; names that begin with _ are for this file only.
set -euo pipefail
# Bash reads a script while it runs, but a sourced file at once: a run must not notice that its run.sh is edited.
if [[ -z ${_whole-} ]]; then
  _whole=1
  # shellcheck source=/dev/null
  source "$0" "$@"
  exit
fi
HERE=$(cd "$(dirname "$0")" && pwd) # folder of the recipe, with its presets
RECIPE=${BASH_SOURCE[1]}            # file that declares the settings; recipes/demo uses that of another recipe
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=recipes/lib/env.sh
POSENC_LOOK_ONLY=1 source "$ROOT/recipes/lib/env.sh" # the first command that runs checks that fairseq is there
export HERE PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH}
# shellcheck disable=SC2034 # recipes use these arrays
PLUGIN=(--user-dir "$ROOT/fairseq_posenc") \
  PLAIN=(--required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json)

# Settings of every recipe. A comment is the help text, and may end with the type of the value (recipes/lib/settings.py).
output=results/$(basename "$HERE") # output folder
pos_enc=none,shaw      # encodings to compare with the first: NAME or NAME[OPTION=VALUE,...], separated by commas
seeds=1                # random seeds of training, separated by commas [list int 0..]
jobs=1                 # number of models that are trained at the same time [int 1..]
launch=local           # what starts the processes of a training [local|torchrun|slurm]
processes=1            # processes of a training on each node (on GPUs: one per GPU) [int 1..]
nodes=1                # nodes of a training [int 1..]
rendezvous=''          # HOST:PORT of the first node, for several nodes [if launch=torchrun]
batches=1              # batches per update, summed over all processes [int 1..]
device=auto            # auto takes GPUs with Slurm, or if nvidia-smi finds any [auto|cpu|gpu]
precision=auto         # floating-point format of training; auto takes bf16 if all GPUs have it [auto|float32|bf16|fp16]
threads=0              # processor threads of each command (0: all cores) [int 0..]
until=''               # stop after these steps, such as train
# shellcheck disable=SC2034 # recipes use these
train=()               # flags of fairseq-train
# shellcheck disable=SC2034
generate=()            # flags of fairseq-generate

say() { echo "[$(printf %4d $SECONDS)s] $*"; }
fail() { _reason=$* && echo "error: $*" >&2 && exit 1; }

# What a recipe may set: stacks and own before `options`, free before a step.
stacks=() label_suffix='' # stacks in which the encodings must work (encoder, decoder); text that may follow an encoding
declare -A _marks=() own=() # flags of fairseq-train that the recipe writes itself, and the settings to give instead
free=()                   # words that the next step adds to its command, although they do not change its output
# What a recipe may read: --cpu unless the run uses GPUs, and the names of the models that `models` has trained.
CPU=() finished=() dry_run=''
_given=' ' _names=() _cards=() _prefix=() _chain='' _stopped='' _model='' _reason='' _commit='' _has_fairseq='' _end='' _mark='' _log=''

# Print a hint such as `; did you mean --seeds?`: _nearest WORD KNOWN...
_nearest() {
  PYTHONPATH=$ROOT python3 -c 'import sys; from fairseq_posenc.core.words import nearest
print(nearest(sys.argv[1], sys.argv[2:]))' "$@"
}

# Set `_quoted` to words as a shell reads them, without the path of the current folder.
_quote() {
  local word
  _quoted=''
  for word in "${@//"$PWD/"/}"; do
    [[ $word =~ ^[A-Za-z0-9_./:=,@%+-]+$ ]] || word=${word@Q}
    _quoted+=" $word"
  done
  _quoted=${_quoted# }
}

# Print the settings as assignments.
_settings() {
  local _name
  echo "recipe=$(basename "$HERE")"
  for _name in "${_names[@]}"; do
    local -n _value=$_name
    _quote "${_value[@]}"
    if [[ $_arrays == *" $_name "* ]]; then echo "$_name=($_quoted)"; else echo "$_name=$_quoted"; fi
  done
}

# split TEXT: print the parts between commas outside of brackets, one a line.
split() { [[ -z $1 ]] || sed -E ':a; s|(\[[^],]*),|\1\n|; ta; s|,|\v|g; s|\n|,|g; s|\v|\n|g' <<<"$1"; }

# slug LABEL: print a label as a part of a file name: shaw.clip=16 for shaw[clip=16], rope--t5 for rope/t5.
slug() {
  local text=${1//[\[,]/.}
  text=${text//]/} text=${text//:/_} text=${text//\//--}
  echo "${text// /_}"
}

# flag NAME [ARRAY]: print the value of a flag in an array (default: train), or nothing if it is not set.
flag() {
  local -n _flags=${2:-train}
  local number
  for ((number = ${#_flags[@]} - 1; number >= 0; number--)); do
    [[ ${_flags[number]} != "--$1" ]] || { echo "${_flags[number + 1]-}" && return; }
  done
}

# set_flag ARRAY FLAG VALUE...: replace a flag in an array. `true` sets it without a value, and `false` removes it.
set_flag() {
  local -n _flags=$1
  local word skip='' kept=()
  for word in "${_flags[@]}"; do
    [[ $word != --* ]] || { skip='' && [[ $word != "--$2" ]] || skip=1; }
    [[ -n $skip ]] || kept+=("$word")
  done
  case ${3-true} in true) kept+=("--$2") ;; false) ;; *) kept+=("--$2" "${@:3}") ;; esac
  _flags=("${kept[@]}")
}

# Of flags that an array has twice, keep the last, as argparse does.
_last_flags() {
  local -n _all=$1
  local word words=("${_all[@]}" --) flag=()
  for word in "${words[@]}"; do
    [[ $word != --* || ${#flag[@]} == 0 ]] || { set_flag "$1" "${flag[@]}" && flag=(); }
    flag+=("${word#--}")
  done
}

# options "$@": read the preset, then the command line; check all values, and take the folder's lock.
options() {
  local _name _file _words=("$0" "$@") _known='' _show='' _checks=("--suffix=$label_suffix" "${stacks[@]/#/--stack=}")
  mapfile -t _names < <(for _file in "$ROOT/recipes/lib/recipe.sh" "$RECIPE"; do
    sed -nE '/^options|\(\) \{/q; s/^([a-z][a-z_]*)=[^#]*# .*/\1/p' "$_file"
  done | awk '!known[$0]++')
  for ((_name = 1; _name <= $#; _name++)); do
    [[ ${_words[_name]} != --preset ]] || preset=${_words[_name + 1]-}
    [[ ${_words[_name]} != --preset=* ]] || preset=${_words[_name]#*=}
  done
  _file=$HERE/conf/$preset.sh && [[ $preset != */* ]] || _file=$preset
  # shellcheck disable=SC2046 # the names of presets have no spaces
  [[ -f $_file ]] || fail "--preset $preset: there is no such preset$(cd "$HERE/conf" && _nearest "$preset" $(basename -s .sh ./*.sh))"
  _known=" $(compgen -v | paste -sd ' ') "
  # shellcheck source=/dev/null
  source "$_file"
  for _name in $(compgen -v); do
    [[ $_known == *" $_name "* || $_name != [a-z]* ]] || fail "$_file: there is no setting $_name$(_nearest "$_name" "${_names[@]}")"
  done
  _arrays=" $(compgen -A arrayvar | paste -sd ' ') "
  for _name in "${_names[@]}"; do [[ $_arrays != *" $_name "* ]] || _last_flags "$_name"; done
  while (($#)); do
    [[ $1 != --*=* ]] || set -- "${1%%=*}" "${1#*=}" "${@:2}"
    _name=${1#--} _name=${_name%%.*} _name=${_name//-/_}
    [[ $1 == --* || $1 == -h ]] || fail "unexpected argument $1. Options begin with --, and a value with spaces needs quotes."
    case $1 in
      -h | --help | --settings) _show=$1 dry_run=1 && shift && continue ;;
      --dry-run) dry_run=1 && shift && continue ;;
    esac
    [[ " ${_names[*]} " == *" $_name "* ]] || fail "unknown option $1$(_nearest "$1" "${_names[@]/#/--}")"
    (($# > 1)) || fail "$1 needs a value."
    if [[ $_arrays == *" $_name "* ]]; then
      [[ $1 == --*.* ]] || fail "$1: write $1.FLAG VALUE."
      set_flag "$_name" "${1#*.}" "$2"
    else
      [[ $1 != --*.* ]] || fail "unknown option $1$(_nearest "$1" "${_names[@]/#/--}")"
      [[ $_given != *" $_name "* ]] || fail "$1 is given twice. Give it once, with commas between several values."
      _given+="$_name " && printf -v "$_name" %s "$2"
    fi
    shift 2
  done
  _known=$(_settings) output=$(realpath -m -- "$output")
  [[ $_show != --settings ]] || { echo "$_known" && exit; }
  _checks+=("--given=$_given")
  for _name in "${!own[@]}"; do _checks+=("--own=$_name=${own[$_name]}"); done
  [[ -z $dry_run ]] || _checks+=(--dry-run)
  [[ -z $_show ]] || _checks+=(--help-text)
  [[ -z $dry_run && $_known == "$(cat "$output/settings.sh" 2>/dev/null)" ]] ||
    python3 -m recipes.lib.settings "$RECIPE" "${_checks[@]}" <<<"$_known" || exit 1
  [[ -z $_show ]] || exit 0
  [[ -n $dry_run ]] || _claim "$_known" "${_words[@]}"
  _machine
}

# Make the output folder and lock it: _claim SETTINGS COMMAND... Every command of the run inherits the lock.
_claim() {
  local recipe file holders=()
  { mkdir -p "$output"/{logs,scores,.done} && : >>"$output/.lock"; } 2>/dev/null ||
    fail "--output $output: the folder cannot be written. Choose another folder."
  exec {_lock}>"$output/.lock" # a number of its own: a recipe that is a step of another one keeps both locks
  recipe=$(sed -n 's/^recipe=//p' "$output/settings.sh" 2>/dev/null || basename "$HERE")
  [[ $recipe == "$(basename "$HERE")" ]] || fail "--output $output: the folder has a run of recipes/$recipe. Choose another folder."
  flock -n "$_lock" || {
    exec {_lock}>&-
    for file in /proc/[0-9]*/fd/*; do
      [[ ! $file -ef $output/.lock ]] || { file=${file#/proc/} && holders+=("${file%%/*}"); }
    done
    fail "$output: another run, or a command that it left behind, uses this folder (processes: ${holders[*]:-on another machine})."
  }
  trap _stop INT TERM HUP
  _quote "${@:2}"
  echo "$1" >"$output/settings.sh"
  echo "$_quoted" >"$output/command.sh"
  : >"$output/models.tsv"
  : >"$output/steps.txt"
}

# no_effect REASON NAME...: stop if the command line sets one of these settings, because they then change nothing.
no_effect() {
  local name
  for name in "${@:2}"; do [[ $_given != *" $name "* ]] || fail "--${name//_/-} has no effect: $1. Leave it out."; done
}

# Find out which devices and which precision to use, and say so.
_machine() {
  local gpus='' least
  [[ $device == cpu || ${CUDA_VISIBLE_DEVICES-any} == '' ]] ||
    gpus=$(nvidia-smi --query-gpu=index,name,compute_cap --format=csv,noheader 2>/dev/null || true)
  [[ $device != auto ]] || { device=cpu && [[ -z $gpus && $launch != slurm ]] || device=gpu; }
  IFS=, read -ra _cards <<<"${CUDA_VISIBLE_DEVICES-$(cut -d , -f 1 <<<"$gpus" | paste -sd ,)}"
  if [[ $precision == auto ]]; then
    least=$(awk -F ', *' '{print $NF}' <<<"$gpus" | sort -n | head -n 1)
    precision=float32 && [[ $device == cpu || ! $least =~ ^([89]|[1-9][0-9])\. ]] || precision=bf16
  fi
  [[ $device == gpu ]] || CPU=(--cpu)
  ((threads == 0)) || export OMP_NUM_THREADS=$threads MKL_NUM_THREADS=$threads
  [[ -z $dry_run ]] || return 0
  [[ $device == cpu || $launch == slurm ]] || ((jobs * processes <= ${#_cards[@]})) ||
    fail "--jobs $jobs --processes $processes: this needs $((jobs * processes)) GPUs, and there are ${#_cards[@]} (${_cards[*]}). Reduce one of them."
  say "device: $device${gpus:+ ($(paste -sd ';' <<<"$gpus"))}, precision: $precision"
}

# End everything that runs, and wait for it, so that the folder's lock is free afterwards.
_stop() {
  local job running tries=0
  trap '' INT TERM HUP
  _stopped=1
  mapfile -t running < <(jobs -p) # models, or a command, which has a process group with all that it has started
  for job in "${running[@]}"; do kill -- "-$job" 2>/dev/null || kill "$job" 2>/dev/null || true; done
  wait
  for job in "${running[@]}"; do
    while kill -0 -- "-$job" 2>/dev/null; do
      ((++tries < 100)) || kill -KILL -- "-$job" 2>/dev/null || break # after ten seconds
      sleep 0.1
    done
  done
  if [[ -z $_model ]]; then # commands inside of $( ), which bash does not list among its jobs, end by themselves
    exec {_lock}>&- && flock --wait 10 "$output/.lock" true || true
    echo "interrupted. Run the same command again to continue." >&2
  fi
  exit 143
}

# reads FILE...: the next steps also depend on the sizes and times of these files, and of the files in folders.
reads() {
  local file
  for file; do [[ -e $file || -n $dry_run ]] || fail "$file does not exist. The recipe reads this file."; done
  [[ -n $dry_run ]] || _chain+=" $(find -L "$@" -type f -printf '%s %T@ %P\n' | sort | sha256sum)"
}

# mark NAME: give the steps and files so far a name for `after`. Every step also has its own name.
mark() { _marks[$1]=$_chain; }

# after NAME...: the next steps depend on what these names stand for, and not on all earlier steps.
after() {
  local name
  _chain=''
  for name; do _chain+=" ${_marks[$name]-$(fail "after $name: there is no such step or mark.")}"; done
}

# step NAME OUTPUT COMMAND...: run a command that writes OUTPUT in the output folder (removed first; `-`: none to remove),
# unless it is done. The words in the array `free` are added to this command; they do not count as changed words.
step() {
  local name=$1 out=$2 added=("${free[@]}") && shift 2
  free=()
  [[ $out == - || $out == "$output"/?* ]] || fail "step $name: its output $out is not in $output."
  _begin "$name" "$@" || return 0
  [[ -n $dry_run || $out == - ]] || rm -rf "${out:?}"
  _run "$name" "$@" "${added[@]}" || { [[ $out == - ]] || rm -rf "${out:?}" && _explain "$name failed"; }
  [[ -n $dry_run || $out == - || -e $out ]] || _explain "$name ended without an error, but did not write $out"
  _finish "$name" "$out"
}

# device_step NAME OUTPUT COMMAND...: as step, for a command that computes with a model on at most one GPU: it gets
# --cpu if the run does not use GPUs, and srun runs it with --launch slurm.
device_step() {
  free+=("${CPU[@]}")
  if [[ $launch == slurm ]]; then
    _prefix=(srun --job-name "$1" --nodes 1 --ntasks 1)
    ((${#CPU[@]})) || _prefix+=(--gpus 1)
    ((threads == 0)) || _prefix+=(--cpus-per-task "$threads")
  fi
  step "$@"
}

# train NAME FLAGS...: train with fairseq-train in checkpoints/NAME. An interrupted training with the same flags goes on.
# Return 1 if the training diverged.
train() {
  local name=$1 folder=$output/checkpoints/$1 command=() added=() key='' status=0 cause='' && shift
  _begin "train:$name" fairseq-train "$@" --precision "$precision" --batches "$batches" || {
    mapfile -t key <"$_mark" && _reason=${key[4]-} && [[ -z $_reason ]]
    return
  }
  [[ -n $dry_run ]] || {
    { read -r key <"$folder/.key"; } 2>/dev/null || true
    [[ $key == "$_chain" || ! -d $folder ]] || mv --backup=numbered -T "$folder" "$folder.old"
    [[ $key == "$_chain" ]] || rm -f "$output/logs/$name.train.log"
    mkdir -p "$folder" && echo "$_chain" >"$folder/.key"
  }
  case $launch:$processes in
    slurm:*)
      command=(srun --job-name "train:$name" --nodes "$nodes" --ntasks-per-node "$processes")
      [[ $device == cpu ]] || command+=(--gpus-per-node "$processes")
      ((threads == 0)) || command+=(--cpus-per-task "$threads")
      command+=(python -m recipes.lib.worker) ;;
    local:1) command=(fairseq-train) added=(--distributed-world-size 1) ;; # else it would use every GPU
    *)
      command=(--standalone) && ((nodes == 1)) || command=(--rdzv-backend c10d --rdzv-id posenc --rdzv-endpoint "$rendezvous")
      command=(python -m torch.distributed.run --nnodes "$nodes" --nproc-per-node "$processes" "${command[@]}" -m recipes.lib.worker) ;;
  esac
  [[ $precision == float32 ]] || added+=("--$precision")
  if [[ $device == cpu ]]; then # fairseq's defaults for several processes and for bf16 and fp16 need a GPU
    added+=(--cpu)
    [[ ${command[0]} == fairseq-train ]] || added+=(--distributed-backend gloo --ddp-backend legacy_ddp)
    [[ $precision == float32 ]] || added+=(--fp16-no-flatten-grads)
  fi
  _run "train:$name" "${command[@]}" "$@" --save-dir "$folder" --update-freq $((batches / processes / nodes)) "${added[@]}" || status=$?
  [[ -n $dry_run ]] || cause=$(python -m recipes.lib.divergence "$_log")
  [[ $status == 0 || $cause == *'not finite)' ]] || _explain "train:$name failed"
  _finish "train:$name" "$folder" "$cause"
  _reason=$cause && [[ -z $cause ]]
}

# Return 1 if a step is done; otherwise remove its mark. `_chain` identifies all words up to this step.
_begin() {
  kill -0 $$ 2>/dev/null || exit 1 # the run was killed
  local name=$1 words old='' && shift
  [[ -z $dry_run ]] || { mark "$name" && return; }
  words=${*@Q} words=${words//"$output"/OUTPUT} words=${words//"$ROOT"/ROOT}
  _chain=$(sha256sum <<<"$_chain $words") _chain=${_chain%% *} _mark=$output/.done/$name
  mark "$name"
  echo "$name" >>"$output/steps.txt"
  { read -r old <"$_mark"; } 2>/dev/null || true
  [[ $old != "$_chain" ]] || { _stop_after "$name" && return 1; }
  rm -f "$_mark"
}

# Run a command and wait for it; its output goes to a log. In a dry run, print it.
_run() {
  local name=$1 command=("${_prefix[@]}" "${@:2}") status=0
  _log=$output/logs/${name#*:}.${name%%:*}.log _prefix=() _started=$SECONDS
  [[ $name == *:* ]] || _log=$output/logs/$name.log
  _quote "${command[@]}"
  [[ -z $dry_run ]] || { printf '# %s\n%s\n' "$name" "$_quoted" && return; }
  [[ -n $_has_fairseq ]] || posenc_refuse_without_fairseq || exit 1
  _has_fairseq=1
  _commit=${_commit:-$(git -C "$ROOT" describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null || echo unknown)}
  say "$name ..."
  [[ $name == train:* ]] || : >"$_log"
  echo "$ $_quoted" >>"$_log"
  setsid "${command[@]}" >>"$_log" 2>&1 </dev/null &
  wait $! || status=$?
  return "$status"
}

# Show the end of a step's log, and stop: _explain PROBLEM
_explain() {
  local full=''
  tail -n 15 "$_log" | python3 -c 'import sys; from fairseq_posenc.core.words import visible # of text of the data, too
print(visible(sys.stdin.buffer.read().decode(errors="replace")), end="")' >&2
  ! tail -n 50 "$_log" | grep -qE 'No space left|Disk quota exceeded|inline_container.cc|File too large' || full=', because the disk is full'
  fail "$1$full. Its log: $_log"
}

# Mark a step as done, after its output is on the disk: _finish NAME OUTPUT [CAUSE OF DIVERGENCE]
_finish() {
  [[ -z $dry_run ]] || return 0
  [[ $2 == - ]] || find "$2" -type f -exec sync {} +
  printf '%s\n' "$_chain" $((SECONDS - _started)) "$_commit" "$_quoted" "${3-}" >"$_mark.new" && mv "$_mark.new" "$_mark"
  say "$1 ${3:-done}"
  _stop_after "$1"
}

_stop_after() { [[ -z $until || ${1%%:*} != "$until" ]] || { _end=until && exit 0; }; }

# models FUNCTION [ITEM...]: call FUNCTION NAME ENCODING SEED [ITEM] for each seed, item and encoding, $jobs at a time.
# The array `finished` then names the models that did not fail.
models() {
  local _function=$1 _start=$_chain _seed _item _label _name _slot _running=() _all=() _labels && shift
  mapfile -t _labels < <(split "$pos_enc")
  (($#)) || set -- ''
  for _seed in ${seeds//,/ }; do
    for _item; do
      for _label in "${_labels[@]}"; do
        _name=${_item:+$(slug "$_item").}$(slug "$_label").s$_seed
        [[ -z $dry_run ]] || { "$_function" "$_name" "$_label" "$_seed" ${_item:+"$_item"} && finished+=("$_name") && continue; }
        printf '%s\t%s\t%s\t%s\n' "$_name" "$_label" "$_seed" "$_item" >>"$output/models.tsv"
        _free_slot
        rm -f "$output/.done/end:$_name"
        _one_model "$_function" "$_name" "$_label" "$_seed" ${_item:+"$_item"} &
        _running[_slot]=$! && _all+=("$_name")
      done
    done
  done
  wait
  for _name in "${_all[@]}"; do
    { read -r _item <"$output/.done/end:$_name"; } 2>/dev/null || _item=failed
    [[ $_item == failed ]] || finished+=("$_name")
    [[ $_item != until ]] || _end=until
    _start+=" $_item"
  done
  [[ -z $_end ]] || exit 0
  [[ -n $dry_run ]] || ((${#finished[@]})) || fail "every model failed. The reasons are in $output/scores/*.failed."
  ((${#finished[@]} >= ${#_all[@]})) || say "$((${#_all[@]} - ${#finished[@]})) of ${#_all[@]} models failed; the report says why. The same command tries again those that did not diverge."
  _chain=$_start
}

# Wait until fewer than $jobs models run, and set `_slot` to a free number.
_free_slot() {
  while :; do
    for ((_slot = 0; _slot < jobs; _slot++)); do
      [[ -n ${_running[_slot]-} ]] && kill -0 "${_running[_slot]}" 2>/dev/null || return 0
    done
    wait -n || true
  done
}

# Run the steps of a model in a process of its own, and record how it ended.
_one_model() {
  local cards=("${_cards[@]:_slot * processes:processes}")
  trap _stop INT TERM HUP
  trap '_record $?' EXIT
  _model=$2
  rm -f "$output/scores/$_model.failed"
  [[ $jobs == 1 || $device == cpu || $launch == slurm ]] || { CUDA_VISIBLE_DEVICES=$(IFS=, && echo "${cards[*]}") && export CUDA_VISIBLE_DEVICES; }
  "$@"
}
_record() {
  [[ -z $_stopped ]] || return 0
  (($1 == 0)) || { _end=failed && echo "${_reason:-failed with exit status $1}" >"$output/scores/$_model.failed"; }
  echo "${_end:-$_chain}" >"$output/.done/end:$_model"
}

# show_results: print the tables of the report, and where the whole report is.
show_results() {
  [[ -z $dry_run ]] || return 0
  sed '/^!\[/d; /^## How it was made/,$d' "$output/results.md"
  echo "Report: ${output#"$PWD/"}/results.html (and results.md, results.json)"
}

# encoding LABEL: print the flags of fairseq-train for NAME[OPTIONS], or for ENCODER/DECODER, one word a line.
encoding() {
  if [[ $1 == */* ]]; then _stack --pos-enc-encoder "${1%%/*}" && _stack --pos-enc-decoder "${1#*/}"; else _stack --pos-enc "$1"; fi
}
_stack() { # a composition such as learned+t5[buckets=16] keeps its brackets, which say whose options they are
  local options=${2#*[}
  [[ $2 == *[* && $2 != *+* ]] || { printf '%s\n' "$1" "$2" && return; }
  printf '%s\n' "$1" "${2%%[*}" "$1-args" "${options%]}"
}
