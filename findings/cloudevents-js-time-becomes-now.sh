#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# CloudEvents' JavaScript SDK 10.0.0: an event at a leap second arrives with the time of its arrival, and is sent on with that.
# CloudEvents 1.0.2 (time) asks for a timestamp of RFC 3339, whose section 5.6 allows a second 60 and whose appendix D has this one.
# Seen for an event of 31 December 2016, 23:59:60 UTC: the SDK returns the present time, without an error. A time with nanoseconds and an
# offset is cut to milliseconds in UTC.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix . cloudevents@10.0.0 > /dev/null

cat > times.cjs <<'SCRIPT'
const { HTTP } = require("cloudevents");

const began = Date.now();
for (const time of ["2027-01-01T00:00:00.123456789+05:30", "2016-12-31T23:59:60Z"]) {
  const body = JSON.stringify({ specversion: "1.0", id: "1", source: "almanac", type: "reservation.start", time });
  const event = HTTP.toEvent({ headers: { "content-type": "application/cloudevents+json" }, body });
  const sent = JSON.parse(HTTP.structured(event).body).time;
  const at = Date.parse(sent);
  console.log(time, "becomes", at >= began && at <= Date.now() ? "the present time" : sent);
}
SCRIPT
node times.cjs | tee seen

diff - seen <<'EXPECTED'
2027-01-01T00:00:00.123456789+05:30 becomes 2026-12-31T18:30:00.123Z
2016-12-31T23:59:60Z becomes the present time
EXPECTED
