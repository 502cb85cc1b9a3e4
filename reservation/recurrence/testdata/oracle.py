# SPDX-License-Identifier: Apache-2.0
"""Expands rules with python-dateutil: reads a list of {"rule": "...", "start": "...", "until": "..."} and prints for each the local
times from the start to before until."""

import datetime
import json
import sys

from dateutil import rrule

answers = []
for question in json.load(sys.stdin):
    start, until = (datetime.datetime.fromisoformat(question[name]) for name in ("start", "until"))
    times = []
    for time in rrule.rrulestr(question["rule"], dtstart=start):
        if time >= until:
            break
        times.append(time.isoformat())
    answers.append(times)
json.dump(answers, sys.stdout)
