package topic

import (
	"context"
	"sync"
	"time"
)

// news is what casts have told and the states do not show yet. A stock scheduler follows
// a cast about aggregates at once, and asks Placement for each request what is free.
type news struct {
	mu sync.Mutex
	// casts is how many have come, aggregates and freed the number of the last one about
	// an aggregate and about an instance that is gone.
	casts, aggregates, freed int64
	read                     int64 // how many had come when the last reading began

	reading sync.Mutex // held while the hosts are read
}

// readTime bounds a reading that a request waits for.
const readTime = 10 * time.Second

// take counts a cast.
func (n *news) take(method string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.casts++
	switch method {
	case "update_aggregates", "delete_aggregate":
		n.aggregates = n.casts
	case "delete_instance_info":
		n.freed = n.casts
	}
}

// unread gives the numbers of the last casts about aggregates and about instances that
// are gone; 0 where the states show them.
func (n *news) unread() (aggregates, freed int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.aggregates > n.read {
		aggregates = n.aggregates
	}
	if n.freed > n.read {
		freed = n.freed
	}
	return aggregates, freed
}

// catchUp returns when the states show what the cast of that number has told, 0 being
// none: who comes while another reads, waits for that. A reading that fails is not tried
// again for the same cast, or requests would wait in a row while the cloud does not answer.
func (s *Service) catchUp(ctx context.Context, cast int64) {
	if cast == 0 || s.Reread == nil {
		return
	}
	n := &s.news
	n.reading.Lock()
	defer n.reading.Unlock()
	n.mu.Lock()
	heard, read := n.casts, n.read
	n.mu.Unlock()
	if read >= cast {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if err := s.Reread(ctx); err != nil {
		s.Log.WarnContext(ctx, "the hosts were not read after a cast; the next reading shows what it has told", "error", err)
	}
	n.mu.Lock()
	n.read = heard
	n.mu.Unlock()
}
