// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// view is a request for the calendar, with the versions of all that the answer depends on.
type view struct {
	by     *serving.Asker
	span   span.Span
	past   bool // the span begins before now, so reservations that are over may be in it
	hosts  []string
	filter *inventory.Filter
	all    bool // there is no filter
	facts  bool
	limit  int
	marker string

	snapshot *inventory.Snapshot
	phases   map[string]powerPhase // by host; nil if the answer has none

	query string // the parameters as the client wrote them
	// The versions: of the live reservations, of the change log and of what was purged if past, and of
	// the inventory, as far as the answer depends on it.
	marks  uint64
	place  int64
	purges int64
	print  string
}

// powerPhase is the state of a host for the energy controller.
type powerPhase struct {
	word  string
	since span.Instant // 0 if it is unknown
}

// view reads the request and the versions.
func (s *API) view(c *serving.Call) (*view, error) {
	q := c.Parameters("start", "end", "host", "filter", "facts", "limit", "marker")
	now := s.Now()
	v := &view{
		by: c.Asker(), span: q.Window(now, serving.DefaultView), hosts: q.Hosts("host"), facts: q.Truth("facts"),
		limit: q.Number("limit", serving.LargestPage, 1, serving.LargestPage), marker: q.Text("marker"),
		snapshot: s.Snapshot(), query: c.Request.URL.RawQuery,
	}
	v.past = v.span.Start < now
	filter := q.Text("filter")
	if q.Err != nil {
		return nil, q.Err
	}
	var err error
	if v.filter, err = inventory.ParseFilter([]byte(filter), v.snapshot, v.by.SeesHidden()); err != nil {
		return nil, renamed(err, "filter")
	}
	v.all = strings.TrimSpace(filter) == ""
	if v.facts {
		if err := v.by.Check("hosts:list", v.by.ProjectID); err != nil {
			return nil, err
		}
	}
	v.print = s.prints.of(v.snapshot, v.facts || !v.all)
	return v, s.readVersions(c.Request.Context(), v)
}

// readVersions reads the versions that are not in memory.
func (s *API) readVersions(ctx context.Context, v *view) (err error) {
	if v.past {
		if v.place, err = s.History.LastChange(ctx); err != nil {
			return err
		}
		kept, err := s.History.Kept(ctx)
		if err != nil {
			return err
		}
		v.purges = kept.Purges
	}
	if v.facts && s.Power != nil && v.by.May("energy:list_hosts", v.by.ProjectID) {
		v.phases, err = s.phases(ctx)
	}
	return err
}

// renamed returns a fault about the field that names the parameter instead.
func renamed(err error, parameter string) error {
	f := *fault.Of(err)
	if f.Kind != fault.Invalid {
		return err
	}
	f.Field = parameter
	return &f
}

// phases returns the phases of the hosts that are switched, by name.
func (s *API) phases(ctx context.Context) (map[string]powerPhase, error) {
	hosts, err := s.Power.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	phases := make(map[string]powerPhase)
	for i := range hosts {
		h := &hosts[i]
		if h.Record.Since != 0 || h.Observed.Mode != "" {
			phases[h.Name()] = powerPhase{h.Phase(), h.Record.Since}
		}
	}
	return phases, nil
}

// key returns a text that is the same only for answers that are. It covers the versions, and who asks
// what: the credentials, and what the policy allows them in their own project and in others, since the
// policy may be reloaded.
func (v *view) key() string {
	by := v.by.Credentials
	by.Roles = slices.Sorted(slices.Values(by.Roles))
	h := sha256.New()
	fmt.Fprintf(h, "%+v %q %v %x %d %d %q", by, v.query, v.span, v.marks, v.place, v.purges, v.print)
	for _, rule := range []string{"reservations:get_all_projects", "reservations:get_hosts", "hosts:get_instances", "properties:get_hidden"} {
		fmt.Fprintf(h, " %t%t", v.by.May(rule, v.by.ProjectID), v.by.May(rule, ""))
	}
	for _, host := range slices.Sorted(maps.Keys(v.phases)) {
		fmt.Fprintf(h, " %q%v", host, v.phases[host])
	}
	return string(h.Sum(nil))
}

// tag returns the ETag of an answer: it changes if and only if the answer does. That of another caller
// is another. It is weak, because the compressed answer has the same.
func (v *view) tag(page []byte) string {
	by := v.by.Credentials
	by.Roles = slices.Sorted(slices.Values(by.Roles))
	h := sha256.New()
	fmt.Fprintf(h, "%+v ", by)
	_, _ = h.Write(page) // always succeeds
	return `W/"` + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]) + `"`
}

// stateOf returns the state of a host in the calendar.
func stateOf(h *inventory.Host) string {
	switch {
	case h.Failure() != "":
		return "out_of_order"
	case h.Power == inventory.PowerSleeping || h.Power == inventory.PowerWaking:
		return string(h.Power)
	}
	return "up"
}

// hostFacts returns the facts about a host that the caller may see.
func (v *view) hostFacts(h *inventory.Host, visible serving.Sight) *v1.HostFacts {
	shown := visible.Host(h)
	facts := &v1.HostFacts{
		Zone: shown.Zone, Aggregates: shown.Aggregates, Properties: shown.Properties, Reservable: shown.Reservable,
		State: stateOf(h), Problem: shown.Problem, InstanceCount: shown.InstanceCount,
	}
	if p, switched := v.phases[h.Name]; switched {
		if facts.Phase = p.word; p.since != 0 {
			facts.PhaseSince = new(p.since.Time())
		}
	}
	if counted := h.Instances == nil && h.InstanceCount > 0; visible.Instances && !counted {
		preemptible := 0
		for i := range h.Instances {
			if h.Instances[i].Preemptible {
				preemptible++
			}
		}
		facts.PreemptibleCount = &preemptible
	}
	return facts
}
