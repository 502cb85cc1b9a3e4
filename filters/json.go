// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// JSON refuses hosts that do not match the query in the hint query
// (nova/scheduler/filters/json_filter.py). A query on which Nova fails matches no host.
//
// Nova's API returns only some of the attributes of hosts: a host is refused if the query needs
// another one.
type JSON struct{}

func (JSON) Name() string { return "JsonFilter" }

// For implements Filter. Without the hint query there is no test.
func (JSON) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	query, err := readQuery(r)
	switch {
	case err != nil:
		return refuseAll(err.Error())
	case query == nil:
		return nil
	default:
		return &queried{s: s, query: query}
	}
}

// Unsupported names an attribute in the query that is unknown for some host.
func (JSON) Unsupported(s *inventory.States, r *placing.Request) string {
	query, err := readQuery(r)
	if err != nil || query == nil {
		return ""
	}
	for i := range s.Len() {
		if _, err := query(s.Host(i)); errors.Is(err, errUntold) {
			return fmt.Sprintf("the hint query uses %v", err)
		}
	}
	return ""
}

// readQuery parses the query of a request; nil if it has none.
func readQuery(r *placing.Request) (term, error) {
	hint := r.Hints["query"]
	if skipsNovaFilters(r) || empty(hint) {
		return nil, nil
	}
	if len(hint) != 1 {
		return nil, errors.New("the hint query needs one value")
	}
	query, err := parseQuery(hint[0])
	if err != nil {
		return nil, fmt.Errorf("the hint query is invalid: %w", err)
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
			q.failed = fmt.Sprintf("the hint query cannot be evaluated: %v", err)
			clear(hosts)
			return
		case !passes:
			hosts.Remove(i)
		}
	}
}

// passes reports whether a host matches the query. Of a list, one element must be true.
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
		return fmt.Sprintf("the hint query uses %v", err)
	}
	return "the host does not match the hint query"
}
