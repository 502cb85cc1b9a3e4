// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// calendarView is a request for the calendar, with the versions of all that the answer depends on.
type calendarView struct {
	by     *asker
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

// calendarView reads the request and the versions.
func (s *server) calendarView(c *gin.Context) (*calendarView, error) {
	q := readQuery(c, "start", "end", "host", "filter", "facts", "limit", "marker")
	now := s.Now()
	v := &calendarView{
		by: asking(c), span: q.window(now, defaultView), hosts: q.hosts("host"), facts: q.truth("facts"),
		limit: q.number("limit", largestPage, 1, largestPage), marker: q.text("marker"),
		snapshot: s.Inventory.Snapshot(), query: c.Request.URL.RawQuery,
	}
	v.past = v.span.Start < now
	filter := q.text("filter")
	if q.err != nil {
		return nil, q.err
	}
	var err error
	if v.filter, err = inventory.ParseFilter([]byte(filter), v.snapshot, v.by.seesHidden()); err != nil {
		return nil, renamed(err, "filter")
	}
	v.all = strings.TrimSpace(filter) == ""
	if v.facts {
		if err := v.by.check("hosts:list", v.by.ProjectID); err != nil {
			return nil, err
		}
	}
	v.print = s.prints.of(v.snapshot, v.facts || !v.all)
	return v, s.readVersions(c.Request.Context(), v)
}

// readVersions reads the versions that are not in memory.
func (s *server) readVersions(ctx context.Context, v *calendarView) (err error) {
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
	if v.facts && s.Energy != nil && v.by.may("energy:list_hosts", v.by.ProjectID) {
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
func (s *server) phases(ctx context.Context) (map[string]powerPhase, error) {
	hosts, err := s.Energy.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	phases := make(map[string]powerPhase)
	for i := range hosts {
		h := &hosts[i]
		if h.Record.Since != 0 || h.Observed.Mode != "" {
			phases[switchedHost(h)] = powerPhase{phase(h), h.Record.Since}
		}
	}
	return phases, nil
}

// key returns a text that is the same only for answers that are. It covers the versions, and who asks
// what: the credentials, and what the policy allows them in their own project and in others, since the
// policy may be reloaded.
func (v *calendarView) key() string {
	by := v.by.Credentials
	by.Roles = slices.Sorted(slices.Values(by.Roles))
	h := sha256.New()
	fmt.Fprintf(h, "%+v %q %v %x %d %d %q", by, v.query, v.span, v.marks, v.place, v.purges, v.print)
	for _, rule := range []string{"reservations:get_all_projects", "reservations:get_hosts", "hosts:get_instances", "properties:get_hidden"} {
		fmt.Fprintf(h, " %t%t", v.by.may(rule, v.by.ProjectID), v.by.may(rule, ""))
	}
	for _, host := range slices.Sorted(maps.Keys(v.phases)) {
		fmt.Fprintf(h, " %q%v", host, v.phases[host])
	}
	return string(h.Sum(nil))
}

// tag returns the ETag of an answer: it changes if and only if the answer does. That of another caller
// is another. It is weak, because the compressed answer has the same.
func (v *calendarView) tag(page []byte) string {
	by := v.by.Credentials
	by.Roles = slices.Sorted(slices.Values(by.Roles))
	h := sha256.New()
	fmt.Fprintf(h, "%+v ", by)
	_, _ = h.Write(page) // always succeeds
	return `W/"` + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]) + `"`
}

// tagsKept is the number of calendars whose tags are remembered.
const tagsKept = 4096

func newTags() *lru.Cache[string, string] {
	tags, err := lru.New[string, string](tagsKept)
	if err != nil {
		panic("api: " + err.Error()) // only for a size below one
	}
	return tags
}

// holds reports whether a list of tags, as in If-None-Match, contains tag.
func holds(headers []string, tag string) bool {
	for _, header := range headers {
		for entry := range strings.SplitSeq(header, ",") {
			entry = strings.TrimPrefix(strings.TrimSpace(entry), "W/")
			if entry == "*" || entry == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}

// fingerprints remembers the fingerprints of the last snapshot of the inventory. They depend on its
// content alone, so that all replicas that see the same hosts have the same ones.
type fingerprints struct {
	mu          sync.Mutex
	snapshot    *inventory.Snapshot
	sizes, full string
}

// of returns the fingerprint of everything in the snapshot, or only of the names and sizes of its
// hosts.
func (f *fingerprints) of(s *inventory.Snapshot, everything bool) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.snapshot != s {
		f.snapshot, f.sizes, f.full = s, "", ""
	}
	print := &f.sizes
	if everything {
		print = &f.full
	}
	if *print == "" {
		*print = fingerprintOf(s, everything)
	}
	return *print
}

func fingerprintOf(s *inventory.Snapshot, everything bool) string {
	h := sha256.New()
	encoder := json.NewEncoder(h)
	encode := func(value any) {
		if err := encoder.Encode(value); err != nil {
			panic(fmt.Sprintf("api: a host cannot be written: %v", err)) // inventory holds no such values
		}
	}
	for _, host := range s.Hosts() {
		if everything {
			encode(host)
			encode(host.Number)
		} else {
			encode(host.Name)
			encode(host.Capacity)
		}
	}
	if everything {
		for _, p := range s.Properties() {
			if p.Hidden {
				encode(p.Name)
			}
		}
	}
	return string(h.Sum(nil))
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
func (v *calendarView) hostFacts(h *inventory.Host, visible sight) *v1.HostFacts {
	shown := host(h, visible)
	facts := &v1.HostFacts{
		Zone: shown.Zone, Aggregates: shown.Aggregates, Properties: shown.Properties, Reservable: shown.Reservable,
		State: stateOf(h), Problem: shown.Problem, InstanceCount: shown.InstanceCount,
	}
	if p, switched := v.phases[h.Name]; switched {
		if facts.Phase = p.word; p.since != 0 {
			facts.PhaseSince = new(p.since.Time())
		}
	}
	if counted := h.Instances == nil && h.InstanceCount > 0; visible.instances && !counted {
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
