package booking

import "time"

const (
	// patience is for how long places in the log that later ones have passed may still
	// become visible. Transactions are aborted sooner; Resync finds what a server stores
	// later still.
	patience = 30 * time.Second
	// margin is how many places before the end of the log a service starts after it has read
	// everything.
	margin = 5000
)

// logCursor is how far a service has read the change log. Places become visible out of order and
// some never do, so the service reads from the first gap again until the gap is closed or too
// old to be closed.
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

// tombstones remember for a while which reservations are no longer live, and in which version,
// so that an older reading does not bring them back.
type tombstones struct{ young, old map[string]int64 }

func (g *tombstones) add(id string, version int64) {
	if g.young == nil {
		g.young = make(map[string]int64)
	}
	g.young[id] = version
}

// version returns the version in which a reservation ended, or 0 if it did not end recently.
func (g *tombstones) version(id string) int64 { return max(g.young[id], g.old[id]) }

// age forgets what was added before the previous call.
func (g *tombstones) age() { g.old, g.young = g.young, nil }
