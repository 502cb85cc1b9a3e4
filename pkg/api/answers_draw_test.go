// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/policy"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// tick is the unit of drawn times, the minute of Blazar's clients, so that claims often touch and
// often collide.
const tick = 60

// How many reservations a lease has at most, and how many floating IPs a scene has.
const mostMembers, mostAddresses = 3, 3

// The callers of scenes. Admins see the hosts of offers and who blocks them; the limits are those of
// their project all the same.
var callers = []string{"demo/admin", "lab/admin"}

// drawScene draws a cloud and the reservations in it, which it makes through the API.
func drawScene(t *rapid.T, rules *policy.Enforcer) *scene {
	s := &scene{t: t, rules: rules, now: noon, leadTime: 300, hosts: drawHosts(t), limits: drawLimits(t)}
	if rapid.IntRange(0, 2).Draw(t, "with images") == 0 {
		s.facts = drawFacts(t, s.hosts)
	}
	for i := range rapid.IntRange(0, mostAddresses).Draw(t, "floating IPs") {
		s.addresses = append(s.addresses, fmt.Sprintf("198.51.100.%d", 101+i))
	}
	s.printed()
	s.open()
	for range rapid.IntRange(0, 9).Draw(t, "steps") {
		s.step()
	}
	return s
}

// step does one thing to the scene.
func (s *scene) step() {
	t := s.t
	switch rapid.IntRange(0, 11).Draw(t, "step") {
	case 0, 1, 2, 3:
		s.does(inquiry{s.caller(), "POST", "/v1/reservations", "", s.drawAsked().body()})
	case 4:
		s.does(inquiry{callers[0], "POST", "/v1/reservations", "", s.drawMaintenance().body()})
	case 5, 6:
		s.does(inquiry{s.caller(), "POST", "/v1/leases", s.version(), s.drawLease().body()})
	case 7:
		if r, ok := s.drawReservation(); ok {
			s.does(inquiry{r.ProjectID + "/admin", "PATCH", "/v1/reservations/" + r.ID, "", s.drawChange(r).body()})
		}
	case 8:
		if l, ok := s.drawLeaseRecord(); ok {
			s.does(inquiry{l.ProjectID + "/admin", "PUT", "/v1/leases/" + l.ID, s.version(), s.drawLeaseChange(l).body()})
		}
	case 9:
		if r, ok := s.drawReservation(); ok {
			s.does(inquiry{r.ProjectID + "/admin", "DELETE", "/v1/reservations/" + r.ID, "", nil})
		}
	case 10:
		s.passes(drawTicks(t, 0, 6, "minutes") + rapid.Int64Range(0, 20).Draw(t, "and seconds"))
		t.Logf("it is %v", s.now)
	case 11:
		h := rapid.IntRange(0, len(s.hosts)-1).Draw(t, "host")
		drawState(t, &s.hosts[h])
		t.Logf("%s is now %q with %d instances", s.hosts[h].Name, s.hosts[h].Power, s.hosts[h].InstanceCount)
		s.open()
	}
}

func (s *scene) caller() string { return rapid.SampledFrom(callers).Draw(s.t, "by") }
func (s *scene) version() string {
	return rapid.SampledFrom([]string{"1.0", "1.1"}).Draw(s.t, "version")
}

func drawTicks(t *rapid.T, least, most int, label string) int64 {
	return tick * int64(rapid.IntRange(least, most).Draw(t, label))
}

func drawHosts(t *rapid.T) []inventory.Host {
	hosts := make([]inventory.Host, rapid.IntRange(1, 5).Draw(t, "hosts"))
	for i := range hosts {
		h := &hosts[i]
		*h = machine(fmt.Sprintf("h%d", i))
		h.Reservable = rapid.IntRange(0, 7).Draw(t, "outside the pool") > 0
		h.BootSeconds = rapid.SampledFrom([]int64{0, 90, 240}).Draw(t, "boot")
		h.Capacity = rapid.SampledFrom([]resource.Vector{
			{VCPUs: 4, MemoryMB: 4096, DiskGB: 100}, {VCPUs: 8, MemoryMB: 8192, DiskGB: 100}, {VCPUs: 8, MemoryMB: 2048, DiskGB: 100},
		}).Draw(t, "capacity")
		h.Properties = map[string]inventory.Value{"gpu": inventory.StringValue(rapid.SampledFrom([]string{"none", "a100"}).Draw(t, "gpu"))}
		if rack := []string{"r1", "r2", "r1", "", "r2"}[i]; rack != "" {
			h.Properties["rack"] = inventory.StringValue(rack)
		}
		drawState(t, h)
	}
	return hosts
}

// drawState changes facts that an inventory may report differently from one reading to the next.
func drawState(t *rapid.T, h *inventory.Host) {
	h.Power = rapid.SampledFrom([]inventory.Power{
		inventory.PowerOn, inventory.PowerOn, inventory.PowerOn, inventory.PowerOn, inventory.PowerSleeping, inventory.PowerSleeping,
		inventory.PowerWaking, inventory.PowerFailed,
	}).Draw(t, "power")
	h.InstanceCount = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "guests")
	h.Used = resource.Vector{VCPUs: int64(h.InstanceCount), MemoryMB: 600 * int64(h.InstanceCount)}
}

// drawLimits draws limits that are sometimes reached; half of the time there are none.
func drawLimits(t *rapid.T) planning.Limits {
	if rapid.Bool().Draw(t, "without limits") {
		return planning.Limits{}
	}
	return planning.Limits{
		Duration:        rapid.SampledFrom([]int64{0, 0, 6 * tick, 12 * tick}).Draw(t, "longest"),
		StartAhead:      rapid.SampledFrom([]int64{0, 0, 8*tick + 7, 16 * tick}).Draw(t, "farthest"),
		Hosts:           rapid.SampledFrom([]int{0, 0, 2, 4}).Draw(t, "most hosts"),
		HostSeconds:     rapid.SampledFrom([]int64{0, 0, 20 * tick, 60 * tick}).Draw(t, "most host-seconds"),
		ExtensionWindow: rapid.SampledFrom([]int64{0, 0, 3 * tick}).Draw(t, "extension window"),
	}
}

// drawFacts draws images, what the hosts have of them, and how fast they come.
func drawFacts(t *rapid.T, hosts []inventory.Host) *staging.Facts {
	f := &staging.Facts{
		Site: staging.Site{
			Strategy:     rapid.SampledFrom([]staging.Strategy{staging.EDF, staging.JIT}).Draw(t, "strategy"),
			Repositories: []staging.Repository{{Name: "glance", Rate: 10}},
			Limit:        rapid.SampledFrom([]int64{0, 0, 1000}).Draw(t, "pool"),
			Lifetime:     rapid.SampledFrom([]int64{0, 600}).Draw(t, "lifetime"),
		},
		Images: map[string]staging.Image{}, Pools: map[string][]staging.Entry{},
	}
	for _, i := range []staging.Image{{ID: "small", Size: 300}, {ID: "large", Size: 900}} {
		f.Images[i.ID] = i
	}
	for i := range hosts {
		if id := rapid.SampledFrom([]string{"", "", "small", "large"}).Draw(t, "in the pool"); id != "" {
			until := noon.Add(drawTicks(t, 1, 20, "until"))
			f.Pools[hosts[i].Name] = []staging.Entry{{Image: f.Images[id], Expire: until}}
		}
	}
	return f
}

// asked is a request for a reservation. Times of 0 are absent from it.
type asked struct {
	kind, affinity, filter, policy, image string
	quantity                              int
	size                                  resource.Vector
	start, end                            span.Instant
	duration                              int64
	maintained                            []string // the hosts of maintenance
	together                              *v1.TogetherWish
}

// drawnFilters are native filters, with queries of Blazar's and what these are natively.
var drawnFilters = []struct{ native, query, same string }{
	{}, {}, {},
	{`["=", "$gpu", "a100"]`, `["==", "$gpu", "a100"]`, `["=", "$gpu", "a100"]`},
	{
		`["and", [">=", "$vcpus", 8], ["!=", "$name", "h1"]]`, `["and", [">=", "$vcpus", "8"], ["!=", "$service_name", "h1"]]`,
		`["and", [">=", "$vcpus", 8], ["!=", "$name", "h1"]]`,
	},
	{`["in", "$name", "h0", "h2"]`, `["in", "$service_name", ["h0", "h2"]]`, `["in", "$name", "h0", "h2"]`},
	{`["=", "$name", "h0"]`, `["==", "$service_name", "h0"]`, `["=", "$name", "h0"]`},
	{`[">=", "$free_ram_mb", 4000]`, `[">=", "$memory_mb", "4000"]`, `[">=", "$memory_mb", 4000]`},
	{`["<", "$free_ram_mb", 4000]`, `["<", "$memory_mb", "4000"]`, `["<", "$memory_mb", 4000]`},
}

var sizes = []resource.Vector{{VCPUs: 1}, {VCPUs: 3, MemoryMB: 1024}, {MemoryMB: 2048}, {VCPUs: 8, MemoryMB: 1024, DiskGB: 10}}

func (s *scene) drawAsked() asked {
	t := s.t
	q := asked{
		kind: rapid.SampledFrom([]string{"host", "host", "instance"}).Draw(t, "kind"), quantity: rapid.IntRange(1, 4).Draw(t, "quantity"),
		filter: rapid.SampledFrom(drawnFilters).Draw(t, "filter").native,
	}
	if q.kind == "instance" {
		q.size = rapid.SampledFrom(sizes).Draw(t, "size")
		q.affinity = rapid.SampledFrom([]string{"none", "same", "different"}).Draw(t, "affinity")
	} else if rapid.IntRange(0, 2).Draw(t, "with a policy") == 0 {
		q.policy = string(rapid.SampledFrom(calendar.Policies).Draw(t, "policy"))
	}
	if s.facts != nil {
		q.image = rapid.SampledFrom([]string{"", "small", "large"}).Draw(t, "image")
	}
	s.drawTimes(&q)
	return q
}

// drawTimes draws which times a request names, and the times.
func (s *scene) drawTimes(q *asked) {
	t := s.t
	form := rapid.IntRange(0, 15).Draw(t, "which times")
	if form&1 != 0 {
		q.start = s.soon(rapid.IntRange(0, 18).Draw(t, "start"))
	}
	if form&2 != 0 {
		q.end = max(q.start, s.now).Add(drawTicks(t, 1, 20, "window"))
	}
	if form&4 != 0 || q.end == 0 {
		q.duration = drawTicks(t, 1, 10, "duration")
	}
}

// soon returns the beginning of a minute from now on, or now.
func (s *scene) soon(minutes int) span.Instant {
	return max(s.now, (s.now+span.Instant(tick*minutes))/tick*tick)
}

func (s *scene) drawMaintenance() asked {
	q := asked{kind: "host"}
	for i := range s.hosts {
		if rapid.Bool().Draw(s.t, "maintained") {
			q.maintained = append(q.maintained, s.hosts[i].Name)
		}
	}
	if len(q.maintained) == 0 {
		q.maintained = []string{s.hosts[0].Name}
	}
	s.drawTimes(&q)
	return q
}

// body is the request as the API reads it.
func (q asked) body() map[string]any {
	b := map[string]any{"name": "asked", "kind": q.kind}
	if q.maintained != nil {
		b["maintenance"], b["hosts"] = true, q.maintained
	} else {
		b["quantity"] = q.quantity
	}
	for key, text := range map[string]string{"affinity": q.affinity, "policy": q.policy, "image": q.image} {
		if text != "" {
			b[key] = text
		}
	}
	if q.filter != "" {
		b["host_properties"] = json.RawMessage(q.filter)
	}
	if q.together != nil {
		b["together"] = q.together
	}
	if q.kind == "instance" {
		b["resources"] = sizeBody(q.size)
	}
	if q.start != 0 {
		b["start_time"] = clock(q.start)
	}
	if q.end != 0 {
		b["end_time"] = clock(q.end)
	}
	if q.duration != 0 {
		b["duration"] = q.duration
	}
	return b
}

func sizeBody(size resource.Vector) map[string]any {
	return map[string]any{"vcpus": size.VCPUs, "memory_mb": size.MemoryMB, "disk_gb": size.DiskGB}
}

// drawReservation draws a live reservation; ok is false if there is none.
func (s *scene) drawReservation() (r reservation.Reservation, ok bool) {
	live := s.live()
	if len(live) == 0 {
		return r, false
	}
	return rapid.SampledFrom(live).Draw(s.t, "which"), true
}

// amended is a change of a reservation through the native API; nil fields stay.
type amended struct {
	quantity   *int
	start, end *span.Instant
	filter     *string // JSON
	onEnd      string  // empty stays
	beforeEnd  *int64
	size       *resource.Vector
	affinity   string // empty stays
}

func (s *scene) drawChange(r reservation.Reservation) (c amended) {
	t := s.t
	parts := rapid.SampledFrom([]int{1, 2, 2, 2, 3, 4, 5, 6, 7}).Draw(t, "parts")
	if parts&1 != 0 && !r.Maintenance {
		c.quantity = new(rapid.IntRange(1, 5).Draw(t, "new quantity"))
	}
	if parts&2 != 0 {
		c.end = new(r.Span.End + span.Instant(drawTicks(t, -3, 12, "later end")))
	}
	if parts&4 != 0 {
		c.start = new(r.Span.Start + span.Instant(drawTicks(t, -6, 10, "later start")))
	}
	if filter := rapid.SampledFrom(drawnFilters).Draw(t, "new filter").native; !r.Maintenance && !sameJSON(filter, r.HostProperties) && rapid.IntRange(0, 2).Draw(t, "another filter") == 0 {
		c.filter = new(cmp.Or(filter, `""`))
	}
	if !r.Maintenance && rapid.IntRange(0, 5).Draw(t, "another end") == 0 {
		c.onEnd = string(rapid.SampledFrom(reservation.OnEnds).Draw(t, "new on_end"))
	}
	if rapid.IntRange(0, 5).Draw(t, "another warning") == 0 {
		c.beforeEnd = new(drawTicks(t, 0, 6, "new before_end"))
	}
	if size := rapid.SampledFrom(sizes).Draw(t, "new size"); r.Kind == reservation.Instances && !size.Equal(r.Resources) && rapid.IntRange(0, 3).Draw(t, "another size") == 0 {
		c.size = &size
	}
	if affinity := rapid.SampledFrom([]string{"none", "same", "different"}).Draw(t, "new affinity"); r.Kind == reservation.Instances && affinity != string(r.Affinity) && rapid.IntRange(0, 3).Draw(t, "another affinity") == 0 {
		c.affinity = affinity
	}
	return c
}

func (c amended) body() map[string]any {
	b := map[string]any{}
	if c.quantity != nil {
		b["quantity"] = *c.quantity
	}
	if c.start != nil {
		b["start_time"] = clock(*c.start)
	}
	if c.end != nil {
		b["end_time"] = clock(*c.end)
	}
	if c.filter != nil {
		b["host_properties"] = json.RawMessage(*c.filter)
	}
	if c.onEnd != "" {
		b["on_end"] = c.onEnd
	}
	if c.beforeEnd != nil {
		b["before_end"] = *c.beforeEnd
	}
	if c.size != nil {
		b["resources"] = sizeBody(*c.size)
	}
	if c.affinity != "" {
		b["affinity"] = c.affinity
	}
	return b
}

// leased is a request for a lease, from start to end, or for duration within [start, end).
type leased struct {
	start, end span.Instant
	duration   int64 // 0 means the whole time
	members    []map[string]any
}

func (s *scene) drawLease() leased {
	t := s.t
	q := leased{start: s.soon(rapid.IntRange(0, 15).Draw(t, "start"))}
	q.end = (q.start/tick*tick + tick).Add(drawTicks(t, 0, 9, "length"))
	if rapid.IntRange(0, 2).Draw(t, "with a deadline") == 0 {
		q.duration = drawTicks(t, 1, 6, "duration")
		q.end = q.start.Add(q.duration + drawTicks(t, 1, 12, "until the deadline"))
	}
	for range rapid.IntRange(1, mostMembers).Draw(t, "members") {
		q.members = append(q.members, s.drawMember())
	}
	return q
}

func (s *scene) drawMember() map[string]any {
	t := s.t
	query := rapid.SampledFrom(drawnFilters).Draw(t, "query").query
	switch kind := rapid.IntRange(0, 5).Draw(t, "member"); {
	case kind < 3:
		least := rapid.IntRange(1, 3).Draw(t, "min")
		return map[string]any{
			"resource_type": "physical:host", "min": least, "max": least + rapid.IntRange(0, 2).Draw(t, "more"),
			"hypervisor_properties": "", "resource_properties": query,
		}
	case kind < 5 || len(s.addresses) == 0:
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		return map[string]any{
			"resource_type": "virtual:instance", "amount": rapid.IntRange(1, 4).Draw(t, "amount"), "vcpus": size.VCPUs, "memory_mb": size.MemoryMB,
			"disk_gb": size.DiskGB, "affinity": rapid.SampledFrom([]any{nil, true, false}).Draw(t, "affinity"), "resource_properties": query,
		}
	}
	member := map[string]any{"resource_type": "virtual:floatingip", "network_id": "outside", "amount": rapid.IntRange(1, 2).Draw(t, "amount")}
	if rapid.Bool().Draw(t, "requires an address") {
		member["required_floatingips"] = []string{rapid.SampledFrom(s.addresses).Draw(t, "address")}
	}
	return member
}

// body is the request as Blazar's clients send it; a duration needs microversion 1.1.
func (q leased) body() map[string]any {
	b := map[string]any{"name": "lease", "start_date": minutes(q.start), "reservations": q.members, "events": []any{}}
	if q.duration != 0 {
		b["duration"], b["deadline"] = q.duration, minutes(q.end)
	} else {
		b["end_date"] = minutes(q.end)
	}
	return b
}

func (s *scene) drawLeaseRecord() (l reservation.LeaseRecord, ok bool) {
	list := s.leases()
	if len(list) == 0 {
		return l, false
	}
	return rapid.SampledFrom(list).Draw(s.t, "which lease"), true
}

// leaseChange is a change of a lease through Blazar's form; nil fields stay.
type leaseChange struct {
	start, end *span.Instant
	members    []map[string]any
}

func (s *scene) drawLeaseChange(l reservation.LeaseRecord) (c leaseChange) {
	t := s.t
	parts := rapid.SampledFrom([]int{1, 2, 2, 2, 3, 4, 6, 7}).Draw(t, "parts")
	if parts&1 != 0 {
		c.start = new(l.Span.Start/tick*tick + span.Instant(drawTicks(t, -6, 10, "later start")))
	}
	if parts&2 != 0 {
		c.end = new(l.Span.End/tick*tick + span.Instant(drawTicks(t, -3, 12, "later end")))
	}
	if parts&4 == 0 {
		return c
	}
	for _, r := range l.Reservations {
		m := map[string]any{"id": r.ID}
		if r.Kind == reservation.Hosts {
			least := rapid.IntRange(1, 3).Draw(t, "new min")
			m["min"], m["max"] = least, least+rapid.IntRange(0, 2).Draw(t, "more")
		} else {
			m["amount"] = rapid.IntRange(1, 4).Draw(t, "new amount")
		}
		c.members = append(c.members, m)
	}
	return c
}

func (c leaseChange) body() map[string]any {
	b := map[string]any{}
	if c.start != nil {
		b["start_date"] = minutes(*c.start)
	}
	if c.end != nil {
		b["end_date"] = minutes(*c.end)
	}
	if c.members != nil {
		b["reservations"] = c.members
	}
	return b
}
