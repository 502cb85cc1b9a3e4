#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ical.js 2.2.1: an occurrence whose local start does not exist is an hour early, and one whose local start exists twice is the later one.
# RFC 5545 (section 3.3.5) reads a time in a gap with the offset from before it, and takes the first of two.
# Seen for a DAILY event in Europe/Paris from 02:30 to 04:30. On 28 March 2027 it begins at 00:30 UTC, which is 01:30; by the RFC it
# begins at 01:30 UTC, which is 03:30. On 31 October it begins at 01:30 UTC, the second 02:30; by the RFC at 00:30 UTC.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix . ical.js@2.2.1 > /dev/null

cat > series.mjs <<'SCRIPT'
import ICAL from "ical.js";

const zone = new ICAL.Component(ICAL.parse(`BEGIN:VTIMEZONE
TZID:Europe/Paris
BEGIN:DAYLIGHT
DTSTART:19810329T020000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
END:DAYLIGHT
BEGIN:STANDARD
DTSTART:19961027T030000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
END:VTIMEZONE`));
ICAL.TimezoneService.register(zone);

for (const day of ["20270327", "20271030"]) {
  const event = new ICAL.Event(new ICAL.Component(ICAL.parse(`BEGIN:VEVENT
UID:course
DTSTART;TZID=Europe/Paris:${day}T023000
DTEND;TZID=Europe/Paris:${day}T043000
RRULE:FREQ=DAILY;COUNT=3
END:VEVENT`)));
  const times = event.iterator();
  for (let time = times.next(); time; time = times.next()) {
    const { startDate, endDate } = event.getOccurrenceDetails(time);
    console.log(startDate.toJSDate().toISOString(), endDate.toJSDate().toISOString());
  }
}
SCRIPT
node series.mjs | tee seen

diff - seen <<'EXPECTED'
2027-03-27T01:30:00.000Z 2027-03-27T03:30:00.000Z
2027-03-28T00:30:00.000Z 2027-03-28T02:30:00.000Z
2027-03-29T00:30:00.000Z 2027-03-29T02:30:00.000Z
2027-10-30T00:30:00.000Z 2027-10-30T02:30:00.000Z
2027-10-31T01:30:00.000Z 2027-10-31T03:30:00.000Z
2027-11-01T01:30:00.000Z 2027-11-01T03:30:00.000Z
EXPECTED
