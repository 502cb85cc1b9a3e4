# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# controller.sh NODES, to be sourced, unpacks Slurm 22.05.8 of Debian 12 in a temporary folder, which is the working directory then,
# with the configuration of a cluster of some nodes. All of it is gone when the script ends.

folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder" || exit
apt-get -qq download slurmctld=22.05.8-4+deb12u3 slurm-client=22.05.8-4+deb12u3 slurm-wlm-basic-plugins=22.05.8-4+deb12u3 \
  munge=0.5.15-2+deb12u1 libmunge2=0.5.15-2+deb12u1 libhwloc15=2.9.0-1 libnuma1=2.0.16-1 libjson-c5=0.16-2 libyaml-0-2=0.2.5-1 \
  libfaketime=0.9.10-2.1
for package in *.deb; do dpkg -x "$package" root; done
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries:$libraries/slurm-wlm PATH=$folder/root/usr/bin:$folder/root/usr/sbin:$PATH SLURM_CONF=$folder/slurm.conf
export TZ=Europe/Paris FAKETIME_DONT_FAKE_MONOTONIC=1

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
NodeName=node[1-$1] State=CLOUD CPUs=16 RealMemory=65536
PartitionName=all Nodes=ALL Default=YES State=UP
CONFIG

shim=$(find "$folder/root" -name libfaketime.so.1)
time='2027-01-01 00:00:00'
# shifted COMMAND... runs a command whose clock begins at $time.
shifted() { env LD_PRELOAD="$shim" FAKETIME="@$time" "$@"; }
# begin TIME starts the controller at a time.
begin() {
  time=$1
  shifted munged --foreground --force --key-file="$folder/key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
    --seed-file="$folder/seed" > munged.log 2>&1 &
  shifted slurmctld-wlm -D -f "$folder/slurm.conf" > slurmctld.log 2>&1 &
  for _ in $(seq 150); do
    if shifted scontrol ping 2>/dev/null | grep -q 'is UP'; then return; fi
    sleep 0.2
  done
  cat slurmctld.log
  exit 1
}
end() {
  kill "$(cat slurmctld.pid)" "$(cat munged.pid)"
  wait
}
