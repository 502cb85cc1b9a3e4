package filters

import (
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// JSON refuses hosts that are not as the query in the hint query asks
// (nova/scheduler/filters/json_filter.py). A query that Nova cannot answer is answered for
// no host.
//
// Nova's API tells some of the attributes of hosts only: a host of which another is asked
// for is refused.
type JSON struct{}

// Name is the filter's name.
func (JSON) Name() string { return "JsonFilter" }

// For prepares the filter.
func (JSON) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	query, err := readQuery(r)
	switch {
	case err != nil:
		return never(err.Error())
	case query == nil:
		return nil
	default:
		return &queried{s: s, query: query}
	}
}

// Beyond says which attribute in the query is not told of some host.
func (JSON) Beyond(s *inventory.States, r *placing.Request) string {
	query, err := readQuery(r)
	if err != nil || query == nil {
		return ""
	}
	for i := range s.Len() {
		if _, err := query(s.Host(i)); errors.Is(err, errUntold) {
			return fmt.Sprintf("the hint query asks for %v", err)
		}
	}
	return ""
}

// readQuery reads the query of a request; nil where it has none.
func readQuery(r *placing.Request) (term, error) {
	hint := r.Hints["query"]
	if unasked(r) || empty(hint) {
		return nil, nil
	}
	if len(hint) != 1 {
		return nil, errors.New("the hint query takes one value")
	}
	query, err := parseQuery(hint[0])
	if err != nil {
		return nil, fmt.Errorf("the hint query cannot be answered: %w", err)
	}
	return query, nil
}

type queried struct {
	s      *inventory.States
	query  term
	failed string
}

func (q *queried) Keep(hosts hostset.Set) {
	for i := range hosts.All() {
		switch passes, err := q.passes(i); {
		case err != nil && !errors.Is(err, errUntold):
			q.failed = fmt.Sprintf("the hint query cannot be answered: %v", err)
			clear(hosts)
			return
		case !passes:
			hosts.Remove(i)
		}
	}
}

// passes says whether a host is as the query asks: of a list one has to be true.
func (q *queried) passes(i int) (bool, error) {
	answer, err := q.query(q.s.Host(i))
	if list, several := answer.(flags); several {
		return list.any(), err
	}
	return truth(answer), err
}

func (q *queried) Why(i int) string {
	if q.failed != "" {
		return q.failed
	}
	if _, err := q.passes(i); err != nil {
		return fmt.Sprintf("the hint query asks for %v", err)
	}
	return "the host is not as the hint query asks"
}
