// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// states returns the states of these hosts and aggregates.
func states(t testing.TB, rows []inventory.HostState, aggregates ...inventory.Aggregate) *inventory.States {
	t.Helper()
	s, err := inventory.NewStates(rows, aggregates)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// left returns the names of the hosts that a filter admits, separated by commas, and the
// reason for each refusal. It fails for a refusal without a reason.
func left(t testing.TB, f filters.Filter, s *inventory.States, r placing.Request, now span.Instant) (names string, why map[string]string) {
	t.Helper()
	hosts, why := s.All().Clone(), map[string]string{}
	test := f.For(s, &r, now)
	if test != nil {
		test.Keep(hosts)
	}
	var passed []string
	for i := range s.Len() {
		name := s.Host(i).Name
		if hosts.Has(i) {
			passed = append(passed, name)
			continue
		}
		if why[name] = test.Why(i); why[name] == "" {
			t.Errorf("%s refuses %s without a reason", f.Name(), name)
		}
	}
	return strings.Join(passed, ","), why
}

// rule is one row of a filter's table of cases.
type rule struct {
	filter  filters.Filter
	request placing.Request
	want    string            // the hosts that pass
	why     map[string]string // by host: a part of the reason
}

func checkRules(t *testing.T, s *inventory.States, rules map[string]rule) {
	for name, tc := range rules {
		t.Run(name, func(t *testing.T) {
			got, why := left(t, tc.filter, s, tc.request, 0)
			if got != tc.want {
				t.Errorf("%q pass, want %q; reasons: %v", got, tc.want, why)
			}
			for host, part := range tc.why {
				if !strings.Contains(why[host], part) {
					t.Errorf("%s is refused with %q, want a reason with %q", host, why[host], part)
				}
			}
		})
	}
}

// checkBeyond fails unless the filter declares that it cannot judge the request, in a reason
// that contains part. With an empty part, the filter must be able to judge it.
func checkBeyond(t *testing.T, f filters.Filter, s *inventory.States, r placing.Request, part string) {
	t.Helper()
	got := filters.Unsupported([]filters.Filter{filters.Traits{}, f}, s, &r)
	if (got == "") != (part == "") || !strings.Contains(got, part) {
		t.Errorf("the filter cannot judge the request because of %q, want a reason with %q", got, part)
	}
}
