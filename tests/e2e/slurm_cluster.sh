# slurm_cluster -- a Slurm cluster of one host for a test: munged, slurmctld and slurmd of Debian's slurm-wlm on loopback, everything
# in a scratch folder. Sourced after lib.sh. The cluster ends with the shell that started it.
#
# Run as a script it is a cluster to try kiln slurm on: `bash tests/e2e/slurm_cluster.sh` is a shell in which sbatch and kiln slurm work;
# the cluster ends with that shell. Words behind it are a command to run in place of the shell.
#
#   slurm_start DIR [LINE...]  starts it; LINEs are appended to slurm.conf. Skips with a reason where it cannot. Sets SLURM_CONF
#   slurm_start_two DIR [LINE...]  the same with two hosts, kiln1 and kiln2, on this one kernel: each slurmd has a host name and a network
#                              of its own, a veth pair to the controller's. Only in a network of the test's own (slurm_own_network)
#   slurm_own_network          executes the test again in such a network, unless it is in one. Skips where the machine does not allow it
#   slurm_stop                 ends it; called at the end of the shell, too
#   slurm_controller_start     slurmctld alone, which a test may have killed ($slurm_controller_pid)
#   slurm_hurry                lets jobs that were put back into the queue start at once, not after 120 s
#
# The host has 4 CPUs by declaration, whatever it has, and two stand-in GPUs: /dev/zero and /dev/full (Slurm wants device files).
# Daemons run in the foreground as children of the test, so that they are ended by their ids.

slurm_skip() { slurm_stop; skip "$*"; }

slurm_own_network() {
    [ -z "${SLURM_OWN_NETWORK:-}" ] || return 0
    command -v ip >/dev/null || skip 'there is no ip (apt-get install iproute2)'
    unshare -n -u sh -c 'ip link set lo up && ip link add kiln1 type veth peer name eth0' 2>/dev/null ||
        skip 'this machine allows no namespaces or no veth pairs, which two slurmds on one kernel need'
    export SLURM_OWN_NETWORK=yes
    exec unshare -n "$0" "$@"
}

slurm_start() { slurm_begin "$1" 127.0.0.1 "$(hostname -s 2>/dev/null || cut -d . -f 1 /etc/hostname)=127.0.0.1" "${@:2}"; }
slurm_start_two() {
    ip link set lo up || fail 'lo'
    slurm_begin "$1" 198.18.71.1 'kiln1=198.18.71.2 kiln2=198.18.71.6' "${@:2}"
}

# slurm_begin DIR CONTROLLER "HOST=ADDRESS ..." [LINE...]
slurm_begin() {
    slurm=$1
    local program port host controller=$2 hosts=$3
    shift 3
    for program in munged slurmctld slurmd sbatch; do
        PATH=$PATH:/usr/sbin command -v $program >/dev/null || skip "there is no $program (apt-get install slurm-wlm munge)"
    done
    PATH=$PATH:/usr/sbin
    [ "$(id -u)" = 0 ] || skip 'slurmd wants root here'
    mkdir -p "$slurm"/{state,log} || fail "mkdir $slurm"
    chmod 755 "$slurm" "$(dirname "$slurm")"
    head -c 1024 /dev/urandom >"$slurm/munge.key"
    chmod 400 "$slurm/munge.key"
    port=$(python3 -c 'import socket
s = [socket.socket() for _ in range(2)]
for x in s: x.bind(("127.0.0.1", 0))
print(*(x.getsockname()[1] for x in s))') || fail 'no free port'
    # --force: munged is wary of folders that others may write to
    munged --force --foreground --key-file="$slurm/munge.key" --socket="$slurm/munge.socket" --pid-file="$slurm/munged.pid" \
        --log-file="$slurm/log/munged" --seed-file="$slurm/munge.seed" >/dev/null 2>&1 &
    slurm_munge_pid=$!
    cat >"$slurm/slurm.conf" <<E1
ClusterName=kiln
SlurmctldHost=$(hostname -s 2>/dev/null || cut -d . -f 1 /etc/hostname)($controller)
SlurmctldPort=${port% *}
SlurmdPort=${port#* }
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge.socket
CredType=cred/munge
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool.%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.%n.pid
SlurmctldLogFile=$slurm/log/slurmctld
SlurmdLogFile=$slurm/log/slurmd.%n
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
GresTypes=gpu
JobCompType=jobcomp/filetxt
JobCompLoc=$slurm/log/jobs
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=30
InactiveLimit=0
KillWait=1
MinJobAge=300
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
$(for host in $hosts; do echo "NodeName=${host%=*} NodeAddr=${host#*=} CPUs=4 RealMemory=2000 Gres=gpu:2 State=UNKNOWN"; done)
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
E1
    [ $# -eq 0 ] || printf '%s\n' "$@" >>"$slurm/slurm.conf"
    printf 'Name=gpu File=%s\n' /dev/zero /dev/full >"$slurm/gres.conf"
    export SLURM_CONF=$slurm/slurm.conf
    at_exit slurm_stop
    for _ in $(seq 100); do [ -S "$slurm/munge.socket" ] && break; sleep 0.1; done
    [ -S "$slurm/munge.socket" ] || slurm_skip "munged does not start: $(tail -n 1 "$slurm/log/munged")"
    slurm_node_pids=
    for host in $hosts; do
        if [ "${host#*=}" = 127.0.0.1 ]; then slurmd -D >"$slurm/log/slurmd.out" 2>&1 & else slurm_host "${host%=*}" "${host#*=}"; fi
        slurm_node_pids="$slurm_node_pids $!"
    done
    slurm_controller_start
    for _ in $(seq 200); do
        [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ] && return
        sleep 0.1
    done
    slurm_skip "no node becomes idle: $(tail -n 2 "$slurm/log/slurmctld" "$slurm"/log/slurmd.* | tr '\n' ' ')"
}

# A host of its own on this kernel, whose only way out is a veth pair to the controller's side: ADDRESS - 1 there.
slurm_host() { # NAME ADDRESS
    local gate=${2%.*}.$((${2##*.} - 1)) pid
    unshare -n -u sh -c 'hostname "$1" && until ip link set eth0 up 2>/dev/null; do sleep 0.05; done
        ip link set lo up && ip address add "$2/30" dev eth0 && ip route add default via "$3" && exec slurmd -D' \
        sh "$1" "$2" "$gate" >"$slurm/log/slurmd.$1.out" 2>&1 &
    pid=$!
    until [ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.01; done
    ip link add "$1" type veth peer name eth0 netns "$pid" && ip address add "$gate/30" dev "$1" && ip link set "$1" up || fail "veth of $1"
}

slurm_controller_start() {
    slurmctld -D >"$slurm/log/slurmctld.out" 2>&1 &
    slurm_controller_pid=$!
}

slurm_stop() {
    [ -z "${slurm_node_pids:-}" ] || scancel --user=root 2>/dev/null
    for pid in ${slurm_node_pids:-} ${slurm_controller_pid:-} ${slurm_munge_pid:-}; do
        kill "$pid" 2>/dev/null || continue
        for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
        kill -KILL "$pid" 2>/dev/null
    done
    # One that runs a job is a process of its own, which slurmd does not take with it.
    for pid in $(pgrep -x slurmstepd); do
        grep -qzF "SLURM_CONF=$slurm/slurm.conf" "/proc/$pid/environ" 2>/dev/null && kill -KILL "$pid" 2>/dev/null
    done
    wait 2>/dev/null
    slurm_node_pids='' slurm_controller_pid='' slurm_munge_pid=''
}

slurm_hurry() {
    local id
    sleep 1.1 # a node refuses a job that begins in the second in which it was put back ("Job credential revoked")
    for id in $(squeue --noheader --states=PENDING --format='%i %r' | awk '$2 == "BeginTime" { print $1 }'); do
        scontrol update "JobId=$id" StartTime=now
    done
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    skip() { echo "$*" >&2; exit 1; }
    fail() { echo "$*" >&2; exit 1; }
    at_exit() { :; }
    place=$(mktemp -d) || exit 1
    slurm_start "$place/cluster"
    trap 'slurm_stop; rm -rf "$place"' EXIT
    [ $# -gt 0 ] || set -- "${SHELL:-bash}"
    "$@"
fi
