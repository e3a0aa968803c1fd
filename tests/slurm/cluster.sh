#!/usr/bin/env bash
# cluster.sh COMMAND...: start a Slurm cluster of one node on this machine, run a command, and stop the cluster.
# The daemons have their own ports and a temporary folder for everything that they write. Only root can run this script,
# because Slurm's daemons start jobs of other users.
set -euo pipefail

fail() {
  echo "error: $1" >&2
  exit 1
}

[[ $(id -u) == 0 ]] || fail "only root can start Slurm's daemons. Run this command as root, for example in a container."
if ! command -v slurmctld slurmd munged sbatch >/dev/null; then
  command -v apt-get >/dev/null || fail "slurmctld, slurmd or munged is missing. Install Slurm and munge."
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge >/dev/null
fi

folder=$(mktemp -d)
chmod 755 "$folder"
mkdir -m 755 "$folder/munge" "$folder/state" "$folder/spool"
node=$(hostname -s)
daemons=() # process ids, in the order in which the daemons are started
export SLURM_CONF=$folder/slurm.conf

show_logs() {
  tail -n 20 "$folder"/*.out >&2 || true
}

stop() {
  local status=$? index
  trap - EXIT
  ((status == 0)) || show_logs
  if ((${#daemons[@]} == 3)); then
    scancel --user root || true
    for _ in {1..60}; do [[ -n $(squeue --noheader 2>/dev/null) ]] && sleep 0.5; done
  fi
  for ((index = ${#daemons[@]} - 1; index >= 0; index--)); do
    kill "${daemons[index]}" 2>/dev/null || true
    wait "${daemons[index]}" || true
  done
  rm -rf "$folder"
  exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

start() { # start NAME COMMAND...: start a daemon in the foreground of a process of its own
  local name=$1
  shift
  setsid "$@" >"$folder/$name.out" 2>&1 </dev/null &
  daemons+=($!)
}

wait_until() { # wait_until DAEMON COMMAND...: wait at most 30 seconds until the command succeeds
  local daemon=$1
  shift
  for _ in {1..60}; do
    "$@" >/dev/null 2>&1 && return
    sleep 0.5
  done
  fail "$daemon did not start in 30 seconds. The ends of the logs follow."
}

is_idle() {
  [[ $(sinfo --noheader --format %T) == idle ]]
}

read -r controller_port node_port < <(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(one.getsockname()[1] for one in sockets))')

# Until Slurm 23.11, slurmd needs one of the plugins for control groups, although this configuration uses none of them.
cgroups=disabled
[[ $(slurmd -V) =~ \ (1[0-9]|2[0-2]|23\.0)\. ]] && cgroups=cgroup/v1
echo "CgroupPlugin=$cgroups" >"$folder/cgroup.conf"

# The node pretends to have six cores, so that several jobs run at the same time on a small machine.
cat >"$SLURM_CONF" <<CONFIGURATION
ClusterName=test
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$controller_port
SlurmdPort=$node_port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/jobs.txt
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
KillWait=5
NodeName=$node NodeAddr=127.0.0.1 CPUs=6 CoresPerSocket=6 RealMemory=64000
PartitionName=cpu Nodes=ALL Default=YES State=UP
CONFIGURATION

dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 status=none
chmod 600 "$folder/munge/key"
munge=$folder/munge
start munged munged --foreground --key-file="$munge/key" --socket="$munge/socket" --pid-file="$munge/pid" \
  --log-file="$folder/munged.log" --seed-file="$munge/seed"
wait_until munged munge --socket="$munge/socket" --no-input
start slurmctld slurmctld -D
wait_until slurmctld scontrol ping
start slurmd slurmd -D
wait_until slurmd is_idle

"$@"
