package booking

import "time"

const (
	// patience is for how long after it was passed by a place in the log is waited
	// for. Transactions are given up sooner; what a server stores later still, Resync
	// finds.
	patience = 30 * time.Second
	// margin is how many places before the end of the log a desk begins that has
	// just read everything.
	margin = 5000
)

// tail is how far a desk has read the log. Places become visible out of order and
// some never do, so what lies behind a gap is read again until the gap is closed or
// too old to be one.
type tail struct {
	low   int64 // nothing at or before it is missing
	marks []mark
}

// mark is the largest place that was visible at a time.
type mark struct {
	at    time.Duration
	place int64
}

func (t *tail) begin(log []LogEntry) {
	for _, e := range log {
		t.low = max(t.low, e.Place-margin)
	}
}

// advance notes what was read behind low, at now.
func (t *tail) advance(log []LogEntry, now time.Duration) {
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

// graveyard remembers for a while which reservations have left the desk, and in
// which version, so that what was read of them before does not bring them back.
type graveyard struct{ young, old map[string]int64 }

func (g *graveyard) bury(id string, version int64) {
	if g.young == nil {
		g.young = make(map[string]int64)
	}
	g.young[id] = version
}

// version is that in which a reservation left, 0 where it did not lately.
func (g *graveyard) version(id string) int64 { return max(g.young[id], g.old[id]) }

// age forgets what was buried before the last time that it was called.
func (g *graveyard) age() { g.old, g.young = g.young, nil }
