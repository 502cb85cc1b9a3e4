#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slurm 22.05.8: a reservation by NodeCnt for more nodes than are free is created with those that are free.
# scontrol prints "Reservation created" and exits with 0, as for one that has all its nodes; only a reservation
# for which no node is free is refused. A change of NodeCnt does the same.
# Seen: of 12 nodes 9 are reserved; NodeCnt=6 creates a reservation of the other 3.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=slurm/controller.sh
source "$(dirname "$0")/slurm/controller.sh" 12

begin '2027-06-04 08:00:00'
shifted scontrol --version
reserve() { shifted scontrol create reservation users=root starttime=2027-06-04T09:00:00 duration=60 "$@"; }
# nodes NAME prints the nodes of a reservation.
nodes() { shifted scontrol -o show reservation "$1" | grep -o ' Nodes=[^ ]* NodeCnt=[^ ]*'; }
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
shifted scontrol delete reservation=six
reserve reservationname=two nodecnt=2
expect ' Nodes=node[10-11] NodeCnt=2' two
shifted scontrol update reservationname=two nodecnt=8
expect ' Nodes=node[10-12] NodeCnt=3' two
if reserve reservationname=none nodecnt=1; then exit 1; fi
