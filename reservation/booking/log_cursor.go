// SPDX-License-Identifier: Apache-2.0

package booking

import "time"

const (
	// patience is for how long a place in the log, which later places have overtaken, may still
	// become visible. Transactions are aborted sooner; what a server stores even later is found by
	// Resync.
	patience = 30 * time.Second
	// margin is how many places before the end of the log a service begins to read it after it has
	// read all records.
	margin = 5000
)

// logCursor is the position up to which a service has read the change log. Places become visible
// out of order and some never do, so the service reads from the first gap again until the gap is
// filled, or is too old to be filled.
type logCursor struct {
	low   int64 // no place up to here is missing
	marks []mark
}

// mark is the largest place that was visible at a time.
type mark struct {
	at    time.Duration
	place int64
}

func (t *logCursor) begin(log []LogEntry) {
	for _, e := range log {
		t.low = max(t.low, e.Place-margin)
	}
}

// advance records the entries read after low, at now.
func (t *logCursor) advance(log []LogEntry, now time.Duration) {
	largest := t.low
	for _, e := range log {
		if e.Place == t.low+1 {
			t.low++
		}
		largest = max(largest, e.Place)
	}
	if len(t.marks) == 0 || t.marks[len(t.marks)-1].at+time.Second <= now {
		t.marks = append(t.marks, mark{now, largest})
	}
	for len(t.marks) > 0 && t.marks[0].at < now-patience {
		t.low = max(t.low, t.marks[0].place)
		t.marks = t.marks[1:]
	}
}

// tombstones contain, for a while, the reservations that are no longer live, with their last
// version, so that an older reading does not restore them.
type tombstones struct{ young, old map[string]int64 }

func (g *tombstones) add(id string, version int64) {
	if g.young == nil {
		g.young = make(map[string]int64)
	}
	g.young[id] = version
}

// version returns the version in which a reservation ended, or 0 if it did not end recently.
func (g *tombstones) version(id string) int64 { return max(g.young[id], g.old[id]) }

// age removes what was added before the previous call.
func (g *tombstones) age() { g.old, g.young = g.young, nil }
