# shellcheck shell=bash
# Every run.sh sources this file. A recipe is a list of settings, then `options "$@"`, then steps from top to bottom.
# A step is skipped if it finished before with the same words, after the same steps. Training resumes by itself.
# docs/adding-a-recipe.md explains what a recipe can use: options, reads, step, train, models, encoding, flag and more.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=recipes/lib/env.sh
POSENC_LOOK_ONLY=1 source "$ROOT/recipes/lib/env.sh" # the first command that runs checks that fairseq is there
export PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH}
# Settings of every recipe. The comment of a setting is its help, and may end with the type of its value in brackets.
output=results/$(basename "$HERE") # output folder
pos_enc=none,shaw      # encodings to compare with the first: NAME or NAME[OPTION=VALUE,...], separated by commas
seeds=1                # random seeds of training, separated by commas [list int 0..]
jobs=1                 # number of models that are trained at the same time [int 1..]
launch=local           # what starts the processes of a training [local|torchrun|slurm]
processes=1            # processes of a training on each node (on GPUs: one per GPU) [int 1..]
nodes=1                # nodes of a training [int 1..]
rendezvous=''          # HOST:PORT of the first node, for torchrun on several nodes
batches=1              # batches per update, summed over all processes [int 1..]
device=auto            # auto takes GPUs with Slurm, or if nvidia-smi finds any [auto|cpu|gpu]
precision=auto         # floating-point format of training; auto takes bf16 if all GPUs have it [auto|float32|bf16|fp16]
threads=0              # processor threads of each command (0: all cores) [int 0..]
until=''               # stop after these steps, such as train
train=()               # flags of fairseq-train
generate=()            # flags of fairseq-generate

say() { echo "[$(printf %4d $SECONDS)s] $*"; }
fail() { reason=$* && echo "error: $*" >&2 && exit 1; }

# shellcheck disable=SC2034 # recipes use these
PLUGIN=(--user-dir "$ROOT/fairseq_posenc") \
  PLAIN=(--required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json)
CPU=()      # --cpu unless the run uses GPUs, for commands that load a model
free=()     # words that the next step adds to its command, although they do not change its output, such as --workers 4
finished=() # names of the models that `models` has trained
names=() cards=() prefix=() command=() chain='' child='' dry_run='' stopped='' model='' reason='' commit='' ended='' mark='' log='' started=0 command_text=''
label_suffix='' # a suffix that a recipe allows after an encoding's name
stacks=()       # stacks of the recipe's models, encoder or decoder, in which the encodings must work
declare -A help=() type=()

# nearest WORD KNOWN...: print a hint such as `; did you mean --seeds?`
nearest() {
  python3 -c 'import difflib, sys; near = difflib.get_close_matches(sys.argv[1], sys.argv[2:], 1, 0.5)
print(f"; did you mean {near[0]}?" if near else "; choose from: " + ", ".join(sys.argv[2:]))' "$@"
}

# Read the settings that a file declares, up to its first function: NAME=VALUE  # HELP [TYPE]
declarations() {
  local line
  while IFS= read -r line && [[ $line != options* && $line != *'() {'* ]]; do
    [[ $line =~ ^([a-z][a-z_]*)=[^#]*'# '(.*)$ ]] || continue
    [[ " ${names[*]} " == *" ${BASH_REMATCH[1]} "* ]] || names+=("${BASH_REMATCH[1]}")
    set -- "$1" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
    help[$2]=$3 type[$2]=''
    [[ ! $3 =~ \[([^]]+)\]$ ]] || type[$2]=${BASH_REMATCH[1]}
    [[ $line != "$2=("* ]] || type[$2]=flags
  done <"$1"
}

# Print a command on one line, as a shell reads it, without the path of the current folder.
words() {
  local word text=''
  for word in "${@//"$PWD/"/}"; do
    [[ $word =~ ^[A-Za-z0-9_./:=,@%+-]+$ ]] || word=${word@Q}
    text+=" $word"
  done
  echo "${text# }"
}

# Print the settings as assignments, which recipes/lib/runs.py reads.
settings() {
  local name
  echo "recipe=$(basename "$HERE")"
  for name in "${names[@]}"; do
    local -n value=$name
    if [[ ${type[$name]} == flags ]]; then echo "$name=($(words "${value[@]}"))"; else echo "$name=$(words "$value")"; fi
  done
}

usage() {
  local name line
  while IFS= read -r line && [[ $line == '#'* ]]; do [[ $line == '#!'* ]] || echo "${line#\# }"; done <"$HERE/run.sh"
  echo "presets: $(presets)   (conf/; current: $preset)"
  for name in "${names[@]}"; do
    local -n value=$name
    if [[ ${type[$name]} != flags ]]; then printf '  --%-18s %s (%s)\n' "${name//_/-}" "${help[$name]}" "${value:-none}"
    else printf '  --%-18s %s (%s)\n' "${name//_/-}.FLAG" "${help[$name]}" "$(words "${value[@]}")"; fi
  done
  echo "  --settings           print the settings"
  echo "  --dry-run            print the commands"
}
presets() { (cd "$HERE/conf" && printf '%s\n' *.sh | sed 's/\.sh$//' | paste -sd ' '); }

# split TEXT: print the parts between commas outside of brackets, one a line.
split() { [[ -z $1 ]] || sed -E ':a; s|(\[[^],]*),|\1\n|; ta; s|,|\v|g; s|\n|,|g; s|\v|\n|g' <<<"$1"; }

# check OPTION VALUE TYPE: stop unless a value has the type of its setting.
check() {
  local part kind=${3%% *} range='' low high
  [[ -n $2 && -n $3 ]] || return 0
  case $kind in
    list) while IFS= read -r part; do check "$1" "$part" "${3#list }"; done < <(split "$2") ;;
    int | number)
      range=${3#"$kind"} low=${range%%..*} high=${range##*..}
      part='^-?[0-9]+$' && [[ $kind == int ]] || part='^-?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$'
      [[ $2 =~ $part ]] && awk -v v="$2" -v l="${low:-"$2"}" -v h="${high:-"$2"}" 'BEGIN {exit !(v + 0 >= l + 0 && v + 0 <= h + 0)}' ||
        fail "$1 $2: the value must be a ${kind/int/whole number}${range:+ in the range$range}." ;;
    *)
      IFS='|' read -ra range <<<"$3"
      for part in "${range[@]}"; do
        case $part in
          FILE) [[ ! -f $2 && -z $dry_run ]] ;; DIR) [[ ! -d $2 && -z $dry_run ]] ;; PATH) [[ ! -e $2 && -z $dry_run ]] ;;
          *) [[ $2 != "$part" ]] ;;
        esac || return 0
      done
      [[ $3 == *'|'* ]] || fail "$1 $2: there is no such ${3,,}."
      fail "$1 $2: the value must be one of $3$(nearest "$2" "${range[@]}")" ;;
  esac
}

# set_flag ARRAY FLAG VALUE: replace a flag in an array. `true` sets it without a value, and `false` removes it.
set_flag() {
  local -n flags=$1
  local word skip='' kept=()
  for word in "${flags[@]}"; do
    [[ $word != --* ]] || skip=''
    [[ $word != "--$2" ]] || skip=1
    [[ -n $skip ]] || kept+=("$word")
  done
  case $3 in true) kept+=("--$2") ;; false) ;; *) kept+=("--$2" "$3") ;; esac
  flags=("${kept[@]}")
}

# flag NAME [ARRAY]: print the value of a flag in an array (default: train), or nothing if it is not set.
flag() {
  local -n flags=${2:-train}
  local number
  for ((number = ${#flags[@]} - 1; number >= 0; number--)); do
    [[ ${flags[number]} != "--$1" ]] || { echo "${flags[number + 1]-}" && return; }
  done
}

# options "$@": read the preset, then the command line; check all values, and take the folder's lock.
options() {
  local name known given=' ' arguments=("$0" "$@") show='' before=''
  declarations "$ROOT/recipes/lib/recipe.sh" && declarations "$HERE/run.sh"
  for ((name = 0; name < $#; name++)); do
    [[ ${arguments[name + 1]} != --preset ]] || preset=${arguments[name + 2]-}
    [[ ${arguments[name + 1]} != --preset=* ]] || preset=${arguments[name + 1]#*=}
  done
  [[ $preset == */* ]] || known=$HERE/conf/$preset.sh
  # shellcheck disable=SC2046
  [[ -f ${known:=$preset} ]] || fail "--preset $preset: there is no such preset$(nearest "$preset" $(presets))"
  before=" $(compgen -v | paste -sd ' ') "
  # shellcheck source=/dev/null
  source "$known"
  for name in $(compgen -v); do
    [[ $before == *" $name "* || $name != [a-z]* ]] || fail "$known: there is no setting $name$(nearest "$name" "${names[@]}")"
  done
  while (($#)); do
    [[ $1 != --*=* ]] || set -- "${1%%=*}" "${1#*=}" "${@:2}"
    name=${1#--} name=${name%%.*} name=${name//-/_}
    case $1 in
      -h | --help) usage && exit ;;
      --dry-run) dry_run=1 && shift && continue ;;
      --settings) show=1 dry_run=1 && shift && continue ;;
      --*.*)
        [[ ${type[$name]-} == flags ]] || fail "unknown option $1. --help lists the options."
        (($# > 1)) || fail "$1 needs a value."
        [[ $name != train ]] || decided "${1#*.}"
        set_flag "$name" "${1#*.}" "$2" ;;
      --*)
        [[ -v type[$name] && ${type[$name]} != flags ]] || fail "unknown option $1$(nearest "$1" "${names[@]/#/--}")"
        (($# > 1)) || fail "$1 needs a value."
        [[ $given != *" $name "* ]] || fail "$1 is given twice. Give it once, with commas between several values."
        given+="$name " && printf -v "$name" %s "$2" ;;
      *) fail "unexpected argument $1. Options begin with --, and a value with spaces needs quotes." ;;
    esac
    shift 2
  done
  for name in "${names[@]}"; do
    local -n value=$name
    [[ ${type[$name]} == flags ]] || check "--${name//_/-}" "$value" "${type[$name]}"
  done
  [[ -z $show ]] || { settings && exit; }
  mapfile -t known < <(sed -nE 's/^.*\b(step|train) "?([a-z][a-z_-]*)[:" ].*/\1 \2/p' "$HERE/run.sh" | sed -E 's/^train .*/train/; s/^step //' | sort -u)
  [[ -z $until || " ${known[*]} " == *" $until "* ]] || fail "--until $until: there is no such step$(nearest "$until" "${known[@]}")"
  output=$(realpath -m -- "$output")
  check_encodings
  [[ -n $dry_run ]] || claim "${arguments[@]}"
  machine
}

# Check the names and options in pos_enc, unless they are those of the last run, which need no Python then.
check_encodings() {
  local labels known=$output/.done/encodings
  mapfile -t labels < <(split "$pos_enc")
  [[ -z $pos_enc || $(cat "$known" 2>/dev/null) == "$pos_enc" ]] || python3 -m recipes.lib.encodings "${labels[@]/%"$label_suffix"/}" \
    "${stacks[@]/#/--stack=}" || exit 1
  [[ -n $dry_run ]] || { mkdir -p "$output/.done" && echo "$pos_enc" >"$known"; } 2>/dev/null || fail "--output $output: the folder cannot be written. Choose another folder."
}

# Refuse flags of fairseq-train that the recipe writes itself: fairseq would silently use the last of two values.
decided() {
  case $1 in
    update-freq) fail "--train.$1: the recipe sets this flag itself. Give --batches instead." ;;
    cpu) fail "--train.$1: the recipe sets this flag itself. Give --device instead." ;;
    fp16 | bf16 | amp) fail "--train.$1: the recipe sets this flag itself. Give --precision instead." ;;
    distributed-*) fail "--train.$1: the recipe sets this flag itself. Give --launch instead." ;;
    save-dir | no-save | no-last-checkpoints | checkpoint-suffix) fail "--train.$1: later steps read the checkpoints. Leave this flag out." ;;
  esac
}

# Make the output folder and lock it. Every command of the run inherits the lock.
claim() {
  local recipe process holders=()
  mkdir -p "$output"/{logs,scores}
  recipe=$(sed -n 's/^recipe=//p' "$output/settings.sh" 2>/dev/null || true)
  [[ ${recipe:-$(basename "$HERE")} == "$(basename "$HERE")" ]] || fail "--output $output: the folder has a run of recipes/$recipe. Choose another folder."
  exec 9>"$output/.lock"
  flock -n 9 || {
    for process in /proc/[0-9]*; do [[ ! $process/fd/9 -ef $output/.lock || ${process##*/} == $$ ]] || holders+=("${process##*/}"); done
    fail "$output: another run, or a command that it left behind, uses this folder (processes: ${holders[*]:-on another machine})."
  }
  trap stop INT TERM HUP
  settings >"$output/settings.sh"
  words "$@" >"$output/command.sh"
  : >"$output/models.tsv"
}

# Find out which devices and which precision to use, and say so.
machine() {
  local gpus='' least
  [[ $device == cpu ]] || gpus=$(nvidia-smi --query-gpu=index,name,compute_cap --format=csv,noheader 2>/dev/null || true)
  [[ ${CUDA_VISIBLE_DEVICES-any} != '' ]] || gpus=''
  [[ $device != auto ]] || { device=cpu && [[ -z $gpus && $launch != slurm ]] || device=gpu; }
  IFS=, read -ra cards <<<"${CUDA_VISIBLE_DEVICES-$(cut -d , -f 1 <<<"$gpus" | paste -sd ,)}"
  if [[ $precision == auto ]]; then
    least=$(sed 's/.*, *//' <<<"$gpus" | sort -n | head -n 1)
    precision=float32 && [[ $device == cpu || ! $least =~ ^([89]|[1-9][0-9])\. ]] || precision=bf16
  fi
  [[ $device == gpu ]] || CPU=(--cpu)
  ((threads == 0)) || export OMP_NUM_THREADS=$threads MKL_NUM_THREADS=$threads
  ((batches % (processes * nodes) == 0)) || fail "--batches $batches: $((processes * nodes)) processes cannot share them equally. Give a multiple."
  [[ $nodes == 1 || $launch != local ]] || fail "--nodes $nodes: --launch local uses one machine only. Give --launch torchrun or slurm."
  [[ $nodes == 1 || $launch != torchrun || -n $rendezvous ]] || fail "--nodes $nodes: torchrun needs the first node's address. Give --rendezvous HOST:PORT."
  [[ -z $dry_run ]] || return 0
  [[ $device == cpu || $launch == slurm ]] || ((jobs * processes <= ${#cards[@]})) ||
    fail "--jobs $jobs --processes $processes: this needs $((jobs * processes)) GPUs, and there are ${#cards[@]} (${cards[*]}). Reduce one of them."
  say "device: $device${gpus:+ ($(paste -sd ';' <<<"$gpus"))}, precision: $precision"
}

# End everything that runs, and wait for it, so that the folder's lock is free afterwards.
stop() {
  trap '' INT TERM HUP
  stopped=1
  # shellcheck disable=SC2046
  kill $(jobs -p) 2>/dev/null || true
  [[ -z $child ]] || kill -- "-$child" 2>/dev/null || true
  wait
  [[ -n $model ]] || echo "interrupted. Run the same command again to continue." >&2
  exit 143
}

# reads FILE...: the next steps also depend on the sizes and times of these files.
reads() {
  local file
  for file in "$@"; do
    [[ -e $file || -n $dry_run ]] || fail "$file does not exist. The recipe reads this file."
    chain+=" $(stat -L -c '%s %.Y' -- "$file" 2>/dev/null || true)"
  done
}

# step NAME OUTPUT COMMAND...: run a command that writes OUTPUT in the output folder (removed first; `-`: none to remove),
# unless it is done. The words in the array `free` are added to this command; they do not count as changed words.
step() {
  local name=$1 out=$2 added=("${free[@]}") && shift 2
  free=()
  [[ $out == - || $out == "$output"/?* ]] || fail "step $name: its output $out is not in $output."
  begin "$name" "$@" || return 0
  [[ -n $dry_run || $out == - ]] || rm -rf "${out:?}"
  run "$name" "$@" "${added[@]}" || { [[ $out == - ]] || rm -rf "${out:?}"; explain "$name" "failed"; }
  [[ -n $dry_run || $out == - || -e $out ]] || explain "$name" "ended without an error, but did not write $out"
  finish "$name" "$out"
}

# device_step NAME OUTPUT COMMAND...: as step, for a command that computes with a model on at most one GPU: it gets
# --cpu if the run does not use GPUs, and srun runs it with --launch slurm.
device_step() {
  prefix=() && free+=("${CPU[@]}")
  [[ $launch != slurm ]] || { prefix=(srun --nodes 1 --ntasks 1) && ((${#CPU[@]})) || prefix+=(--gpus 1); }
  ((${#prefix[@]} == 0 || threads == 0)) || prefix+=(--cpus-per-task "$threads")
  step "$@"
}

# train NAME FLAGS...: train with fairseq-train in checkpoints/NAME. An interrupted training with the same flags goes on.
# Return 1 if the training diverged.
train() {
  local name=$1 folder=$output/checkpoints/$1 command=(fairseq-train) added=() key='' status=0 cause='' && shift
  begin "train:$name" fairseq-train "$@" --precision "$precision" --batches "$batches" || {
    mapfile -t key <"$mark" && reason=${key[4]-} && [[ -z $reason ]]
    return
  }
  [[ -n $dry_run ]] || {
    { read -r key <"$folder/.key"; } 2>/dev/null || true
    [[ $key == "$chain" || ! -d $folder ]] || mv --backup=numbered -T "$folder" "$folder.old"
    [[ $key == "$chain" ]] || rm -f "$output/logs/$name.train.log"
    mkdir -p "$folder" && echo "$chain" >"$folder/.key"
  }
  [[ $launch == local && $processes == 1 ]] || command=(-m recipes.lib.worker)
  case $launch:$nodes in
    slurm:*)
      command=(srun --job-name "train:$name" --nodes "$nodes" --ntasks-per-node "$processes" python "${command[@]}")
      [[ $device == cpu ]] || command=("${command[0]}" --gpus-per-node "$processes" "${command[@]:1}")
      ((threads == 0)) || command=("${command[0]}" --cpus-per-task "$threads" "${command[@]:1}") ;;
    local:1) ((processes > 1)) && command=(--standalone "${command[@]}") || added+=(--distributed-world-size 1) ;;
    torchrun:1) command=(--standalone "${command[@]}") ;;
    *) command=(--rdzv-backend c10d --rdzv-id posenc --rdzv-endpoint "$rendezvous" "${command[@]}") ;;
  esac
  [[ ${command[0]} != -* ]] || command=(python -m torch.distributed.run --nnodes "$nodes" --nproc-per-node "$processes" "${command[@]}")
  [[ $device == gpu ]] || added+=(--cpu)
  # fairseq's default backend and its default wrapper for several processes need GPUs.
  [[ $device == gpu || ${command[*]} != *recipes.lib.worker* ]] || added+=(--distributed-backend gloo --ddp-backend legacy_ddp)
  [[ $precision == float32 ]] || added+=("--$precision")
  [[ $precision == float32 || $device == gpu ]] || added+=(--fp16-no-flatten-grads) # fairseq flattens with CUDA calls
  run "train:$name" "${command[@]}" "$@" --save-dir "$folder" --update-freq $((batches / processes / nodes)) "${added[@]}" || status=$?
  [[ -z $dry_run ]] || return 0
  cause=$(python -m recipes.lib.divergence "$log")
  [[ $status == 0 || $cause == *'not finite)' ]] || explain "train:$name" "failed"
  finish "train:$name" "$folder" "$cause"
  reason=$cause && [[ -z $cause ]]
}

# Return 1 if a step is done; otherwise remove its mark. `chain` identifies all words up to this step.
begin() {
  kill -0 $$ 2>/dev/null || exit 1 # the run was killed
  local name=$1 text old='' && shift
  text=${*@Q} text=${text//"$output"/OUTPUT} text=${text//"$ROOT"/ROOT}
  chain=$(sha256sum <<<"$chain $text") chain=${chain%% *} mark=$output/.done/$name
  [[ -z $dry_run ]] || return 0
  { read -r old <"$mark"; } 2>/dev/null || true
  [[ $old != "$chain" ]] || { stop_after "$name" && return 1; }
  rm -f "$mark"
}

# Run a command and wait for it; its output goes to a log. In a dry run, print it.
run() {
  local name=$1 status=0 && shift
  log=$output/logs/${name#*:}.${name%%:*}.log
  [[ $name == *:* ]] || log=$output/logs/$name.log
  command=("${prefix[@]}" "$@") prefix=()
  [[ -z $dry_run ]] || { printf '# %s\n%s\n' "$name" "$(words "${command[@]}")" && return; }
  posenc_refuse_without_fairseq || exit 1
  commit=${commit:-$(git -C "$ROOT" describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null || echo unknown)}
  say "$name ..."
  [[ $name == train:* ]] || : >"$log"
  started=$SECONDS command_text=$(words "${command[@]}")
  printf '$ %s\n' "$command_text" >>"$log"
  setsid "${command[@]}" >>"$log" 2>&1 </dev/null &
  child=$!
  wait "$child" || status=$?
  child=''
  return "$status"
}

# explain NAME PROBLEM: show the end of a step's log, and stop.
explain() {
  tail -n 15 "$log" >&2
  ! tail -n 50 "$log" | grep -qE 'No space left|Disk quota exceeded|inline_container.cc|File too large' || set -- "$1" "$2, because the disk is full"
  fail "$1 $2. Its log: $log"
}

# finish NAME OUTPUT [CAUSE]: mark a step as done, after its output is on the disk.
finish() {
  [[ -z $dry_run ]] || return 0
  [[ $2 == - ]] || find "$2" -type f -exec sync {} +
  printf '%s\n' "$chain" $((SECONDS - started)) "$commit" "$command_text" "${3-}" >"$mark.new" && mv "$mark.new" "$mark"
  say "$1 ${3:-done}"
  stop_after "$1"
}

stop_after() { [[ -z $until || ${1%%:*} != "$until" ]] || { ended=until && exit 0; }; }

# models FUNCTION [ITEM...]: call FUNCTION NAME ENCODING SEED [ITEM] for each seed, item and encoding, $jobs at a time.
# The array `finished` then names the models that did not fail.
models() {
  local function=$1 start=$chain seed item encoding name slot running=() all=() labels && shift
  mapfile -t labels < <(split "$pos_enc")
  (($#)) || set -- ''
  for seed in ${seeds//,/ }; do
    for item; do
      for encoding in "${labels[@]}"; do
        name=${item:+$(slug "$item").}$(slug "$encoding").s$seed
        [[ -z $dry_run ]] || { "$function" "$name" "$encoding" "$seed" ${item:+"$item"} && finished+=("$name") && continue; }
        printf '%s\t%s\t%s\t%s\n' "$name" "$encoding" "$seed" "$item" >>"$output/models.tsv"
        free_slot
        rm -f "$output/.done/end:$name"
        one_model "$function" "$name" "$encoding" "$seed" ${item:+"$item"} &
        running[slot]=$! && all+=("$name")
      done
    done
  done
  wait
  for name in "${all[@]}"; do
    read -r seed 2>/dev/null <"$output/.done/end:$name" || seed=failed
    [[ $seed == failed ]] || finished+=("$name")
    [[ $seed != until ]] || ended=until
    start+=" $seed"
  done
  [[ -z $ended ]] || exit 0
  ((${#finished[@]})) || fail "every model failed. The reasons are in $output/scores/*.failed."
  ((${#finished[@]} >= ${#all[@]})) || say "$((${#all[@]} - ${#finished[@]})) of ${#all[@]} models failed; the report says why. The same command tries them again."
  chain=$start
}

# Wait until fewer than $jobs models run, and set `slot` to a free number.
free_slot() {
  while :; do
    for ((slot = 0; slot < jobs; slot++)); do
      [[ -n ${running[slot]-} ]] && kill -0 "${running[slot]}" 2>/dev/null || return 0
    done
    wait -n || true
  done
}

# Run the steps of a model in a process of its own, and record how it ended.
one_model() {
  trap stop INT TERM HUP
  trap 'record $?' EXIT
  model=$2
  rm -f "$output/scores/$model.failed"
  ((jobs == 1)) || [[ $device == cpu || $launch == slurm ]] || export CUDA_VISIBLE_DEVICES=$(IFS=, && echo "${cards[*]:slot * processes:processes}")
  "$@"
}
record() {
  [[ -z $stopped ]] || return 0
  (($1 == 0)) || { ended=failed && echo "${reason:-failed with exit status $1}" >"$output/scores/$model.failed"; }
  echo "${ended:-$chain}" >"$output/.done/end:$model"
}

# slug LABEL: print a label as a part of a file name: shaw.clip=16 for shaw[clip=16], rope--t5 for rope/t5.
slug() {
  local text=${1//[\[,]/.}
  text=${text//]/} text=${text//:/_} text=${text//\//--}
  echo "${text// /_}"
}

# encoding LABEL: print the flags of fairseq-train for NAME[OPTIONS], or for ENCODER/DECODER, one word a line.
encoding() {
  [[ $1 != */* ]] || { side encoder "${1%%/*}" && side decoder "${1#*/}" && return; }
  side '' "$1"
}
side() { # a composition such as learned+t5[buckets=16] keeps its brackets, which say whose options they are
  local name=--pos-enc${1:+-$1} text=${2#*[}
  [[ $2 == *[* && $2 != *+* ]] || { printf '%s\n' "$name" "$2" && return; }
  printf '%s\n' "$name" "${2%%[*}" "$name-args" "${text%]}"
}
