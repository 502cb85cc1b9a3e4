#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slurm 22.05.8: a DAILY reservation that begins in the hour that a change of the clock skips is an hour shorter from then on.
# Its next start and its next end are each those of the day before, a day later in local time. The start that does not exist
# becomes one an hour later, and the following days go on from that one; the end stays.
# Seen in Europe/Paris: from 02:30 to 04:30 on 27 March 2027, from 03:30 to 04:30 on 28 March, and from 03:30 to 04:30
# on 29 March. In autumn the night is an hour longer, once: 02:30 to 04:30 on 31 October lasts three hours.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=slurm/controller.sh
source "$(dirname "$0")/slurm/controller.sh" 2

times() { shifted scontrol -o show reservation nightly | grep -o 'StartTime=[^ ]* EndTime=[^ ]* Duration=[^ ]*'; }
# expect TIME OUTPUT waits, from a time on at which the reservation is over, until it has its next times.
expect() {
  begin "$1"
  local before printed
  before=$(times) printed=$before
  for _ in $(seq 90); do
    printed=$(times)
    [ "$printed" = "$before" ] || break
    sleep 1
  done
  end
  echo "$printed"
  [ "$printed" = "$2" ]
}
# nightly DAY books from 02:30 to 04:30 each day from a day on.
nightly() {
  begin "$1 02:00:00"
  shifted scontrol create reservation reservationname=nightly users=root starttime="$1T02:30:00" duration=120 nodes=node1 flags=DAILY
  times
  end
}
shifted scontrol --version
nightly 2027-03-27
expect '2027-03-27 05:00:00' 'StartTime=2027-03-28T03:30:00 EndTime=2027-03-28T04:30:00 Duration=01:00:00'
expect '2027-03-28 06:00:00' 'StartTime=2027-03-29T03:30:00 EndTime=2027-03-29T04:30:00 Duration=01:00:00'
begin '2027-03-28 06:10:00'
shifted scontrol delete reservation=nightly
end
nightly 2027-10-30
expect '2027-10-30 05:00:00' 'StartTime=2027-10-31T02:30:00 EndTime=2027-10-31T04:30:00 Duration=03:00:00'
expect '2027-10-31 06:00:00' 'StartTime=2027-11-01T02:30:00 EndTime=2027-11-01T04:30:00 Duration=02:00:00'
