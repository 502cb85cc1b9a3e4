#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slurm 22.05.8: a reservation that repeats does not hold its node on its later days. A WEEKLY one holds it until its next end only, a
# DAILY one for seven days; a reservation of the same node on a later day is created. One that repeats is created over later ones, too.
# When the day comes, both are active on the same node.
# Seen: of node1 for Mondays from 09:00 to 17:00 and for the second Monday at 10:00, and of node2 for Tuesday, 8 June, at 10:00 and for
# each day from 7 June on from 09:00 to 17:00. On 8 and 14 June at 10:10 there are two active reservations of one node.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=slurm/controller.sh
source "$(dirname "$0")/slurm/controller.sh" 2

reserve() { shifted scontrol create reservation users=root "$@"; }
# seen prints the reservations of both nodes, each with its state.
seen() {
  shifted scontrol -o show reservation |
    sed 's/ReservationName=\([^ ]*\) StartTime=\([^ ]*\) .* Nodes=\([^ ]*\) .* State=\([^ ]*\) .*/\1 \2 \3 \4/' | sort
}
begin '2027-06-04 08:00:00'
shifted scontrol --version
reserve reservationname=weekly starttime=2027-06-07T09:00:00 duration=480 nodes=node1 flags=WEEKLY
if reserve reservationname=first starttime=2027-06-07T10:00:00 duration=60 nodes=node1; then exit 1; fi
reserve reservationname=second starttime=2027-06-14T10:00:00 duration=60 nodes=node1
reserve reservationname=tuesday starttime=2027-06-08T10:00:00 duration=60 nodes=node2
reserve reservationname=daily starttime=2027-06-07T09:00:00 duration=480 nodes=node2 flags=DAILY
if reserve reservationname=sunday starttime=2027-06-13T10:00:00 duration=60 nodes=node2; then exit 1; fi
reserve reservationname=monday starttime=2027-06-14T10:00:00 duration=60 nodes=node2
end

begin '2027-06-07 18:00:00' # the first day of those that repeat is over
for _ in $(seq 90); do
  if seen | grep -c 'weekly 2027-06-14\|daily 2027-06-08' | grep -q 2; then break; fi
  sleep 1
done
end
for day in 08 14; do
  begin "2027-06-$day 10:10:00"
  for _ in $(seq 50); do
    if seen | grep -c ' ACTIVE' | grep -q '[2-9]'; then break; fi
    sleep 0.2
  done
  seen | grep ' ACTIVE' | tee "active-$day"
  end
done
grep -q '^tuesday 2027-06-08T10:00:00 node2 ACTIVE' active-08
grep -q '^daily 2027-06-08T09:00:00 node2 ACTIVE' active-08
grep -q '^second 2027-06-14T10:00:00 node1 ACTIVE' active-14
grep -q '^weekly 2027-06-14T09:00:00 node1 ACTIVE' active-14
