#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slurm 22.05.8: a reservation by NodeCnt for more nodes than are free is created with those that are free.
# scontrol prints "Reservation created" and exits with 0, as for one that has all its nodes; only a reservation
# for which no node is free is refused. A change of NodeCnt does the same.
# Seen: of 12 nodes 9 are reserved; NodeCnt=6 creates a reservation of the other 3.
set -euo pipefail

folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq download slurmctld=22.05.8-4+deb12u3 slurm-client=22.05.8-4+deb12u3 slurm-wlm-basic-plugins=22.05.8-4+deb12u3 \
  munge=0.5.15-2+deb12u1 libmunge2=0.5.15-2+deb12u1 libhwloc15=2.9.0-1 libnuma1=2.0.16-1 libjson-c5=0.16-2 libyaml-0-2=0.2.5-1
for package in *.deb; do dpkg -x "$package" root; done
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries:$libraries/slurm-wlm PATH=$folder/root/usr/bin:$folder/root/usr/sbin:$PATH SLURM_CONF=$folder/slurm.conf

mkdir state
head -c 128 /dev/urandom > key
chmod 600 key
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat > slurm.conf <<CONFIG
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmctldPidFile=$folder/slurmctld.pid
PluginDir=$libraries/slurm-wlm
SelectType=select/cons_tres
ProctrackType=proctrack/linuxproc
ResumeProgram=/bin/true
SuspendProgram=/bin/true
SuspendTime=-1
NodeName=node[1-12] State=CLOUD CPUs=16 RealMemory=65536
PartitionName=all Nodes=ALL Default=YES State=UP
CONFIG
munged --foreground --force --key-file="$folder/key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
  --seed-file="$folder/seed" > munged.log 2>&1 &
slurmctld-wlm -D -f "$folder/slurm.conf" > slurmctld.log 2>&1 &
for _ in $(seq 100); do
  if scontrol ping 2>/dev/null | grep -q 'is UP'; then break; fi
  sleep 0.2
done
scontrol --version

reserve() { scontrol create reservation users=root starttime=now+1hour duration=60 "$@"; }
# nodes NAME prints the nodes of a reservation.
nodes() { scontrol -o show reservation "$1" | grep -o ' Nodes=[^ ]* NodeCnt=[^ ]*'; }
# expect OUTPUT NAME
expect() {
  local printed
  printed=$(nodes "$2")
  echo "$2:$printed"
  [ "$printed" = "$1" ]
}
reserve reservationname=nine nodes='node[1-9]'
reserve reservationname=six nodecnt=6
expect ' Nodes=node[10-12] NodeCnt=3' six
scontrol delete reservation=six
reserve reservationname=two nodecnt=2
expect ' Nodes=node[10-11] NodeCnt=2' two
scontrol update reservationname=two nodecnt=8
expect ' Nodes=node[10-12] NodeCnt=3' two
if reserve reservationname=none nodecnt=1; then exit 1; fi
