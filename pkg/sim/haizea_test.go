// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/workload"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// haizeaReference is what Haizea made of its own traces. Each configuration changes base, the
// configuration of Haizea's tests.
type haizeaReference struct {
	Configurations []string                            `json:"configurations"`
	Results        map[string]map[string]haizeaOutcome `json:"results"`
}

type haizeaOutcome struct {
	Final  map[string]struct{ State, Start, End string } `json:"final"`
	Events [][2]string                                   `json:"events"` // the hour and the event
}

// haizeaFolder returns the folder of the real logs, and the reference beside it.
func haizeaFolder(t *testing.T) (data string, reference haizeaReference) {
	t.Helper()
	data = os.Getenv("ALMANAC_DATA")
	if data == "" {
		t.Skip("ALMANAC_DATA does not name the folder of the traces")
	}
	text, err := os.ReadFile(filepath.Join(data, "..", "reference", "haizea-reference.json"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("Haizea's outcomes are not next to the folder that ALMANAC_DATA names")
	}
	if err == nil {
		err = json.Unmarshal(text, &reference)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data, reference
}

// haizeaTraces returns the members of the archive whose names begin with prefix, by name.
func haizeaTraces(t *testing.T, data, prefix string) map[string][]byte {
	t.Helper()
	from, err := os.Open(filepath.Join(data, "haizea", "haizea-lwf-traces.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	text, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	traces := map[string][]byte{}
	for archive := tar.NewReader(text); ; {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return traces
		}
		if err != nil {
			t.Fatal(err)
		}
		if name, ok := strings.CutPrefix(strings.TrimPrefix(entry.Name, "./"), prefix); ok && strings.HasSuffix(name, ".lwf") {
			if traces[name], err = io.ReadAll(archive); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// haizeaRules returns the rules of a configuration, from Haizea's
// tests/base_config_simulator.conf: each operation takes 2 s; suspending takes no more, resuming
// adds the memory at 32 MB/s, migrating the memory at 100 Mb/s.
func haizeaRules(t *testing.T, configuration string) besteffort.Rules {
	t.Helper()
	rules := besteffort.Rules{
		Suspend: true, Backfilling: besteffort.Aggressive, Migrate: true, Worthwhile: 1,
		Overheads: besteffort.Overheads{Operation: 2, ResumeRate: 32, MoveRate: 12.5},
	}
	switch configuration {
	case "base":
	case "backfill-off":
		rules.Backfilling = besteffort.None
	case "backfill-conservative":
		rules.Backfilling = besteffort.Conservative
	case "backfill-intermediate2":
		rules.Backfilling, rules.Promises = besteffort.Intermediate, 2
	case "migration-no":
		rules.Migrate = false
	default:
		t.Fatalf("configuration %s is not known here", configuration)
	}
	return rules
}

// leased is the outcome of a lease, in seconds since the beginning.
type leased struct {
	id         string
	rejected   bool
	start, end int64
	nodes      string // from 1 on, for each start and each continuation
}

// haizeaRun returns the outcomes of the leases of a trace.
func haizeaRun(t *testing.T, trace []byte, rules besteffort.Rules) []leased {
	t.Helper()
	file := haizeaRead(t, trace)
	queue, reserved := haizeaCloud(t, file.Header().MaxNodes, rules, file)
	if err := queue.Timeline.Run(t.Context(), sim.Second(7*24*3600)); err != nil {
		t.Fatal(err)
	}
	return append(*reserved, haizeaOutcomes(t, queue)...)
}

func haizeaRead(t *testing.T, trace []byte) *workload.File {
	t.Helper()
	file, err := workload.Read(bytes.NewReader(trace), "trace.lwf", workload.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// haizeaCloud returns a cloud of nodes with one CPU and 1,024 MB, in which the leases of files
// will arrive. The booking service books reservations; the Queue handles all others.
func haizeaCloud(t *testing.T, size int, rules besteffort.Rules, files ...*workload.File) (*sim.Queue, *[]leased) {
	t.Helper()
	hosts := sim.Hosts(size)
	snapshot, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	line := sim.NewTimeline(sim.Second(0))
	bookings, err := sim.NewBooking(t.Context(), line, snapshot, sim.BookingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var nodes []besteffort.Node
	for _, h := range hosts {
		nodes = append(nodes, besteffort.Node{Name: h.Name, Free: haizeaShape})
	}
	queue, err := sim.NewQueue(line, sim.QueueOptions{Rules: rules, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	reserved := new([]leased)
	come := func(job workload.Job) error {
		if !job.Reserved {
			queue.Submit(haizeaWork(job))
			return nil
		}
		l, err := haizeaReserve(t, bookings, queue, job)
		*reserved = append(*reserved, l)
		return err
	}
	for _, file := range files {
		for {
			job, err := file.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			line.At(sim.Second(job.Submit), sim.Arriving, func() error { return come(job) })
		}
	}
	return queue, reserved
}

// haizeaShape is a node of all these workloads, and the default shape of a lease.
var haizeaShape = resource.Vector{VCPUs: 1, MemoryMB: 1024}

func haizeaWork(job workload.Job) sim.Work {
	if job.Shape.IsZero() {
		job.Shape = haizeaShape
	}
	w := sim.Work{Request: besteffort.Request{ID: job.ID, Duration: job.Booked(), Shape: job.Shape, Parallel: true}, Real: job.Runtime}
	for i := range job.Size {
		w.VMs = append(w.VMs, besteffort.VM{ID: fmt.Sprintf("%s-%d", job.ID, i+1)})
	}
	return w
}

// haizeaReserve books a lease with an exact start. A lease that ends early releases its nodes at
// its end.
func haizeaReserve(t *testing.T, bookings *sim.Booking, queue *sim.Queue, job workload.Job) (leased, error) {
	l := leased{id: job.ID, start: job.Start, end: job.Start + min(job.Estimate, job.Runtime)}
	r, err := bookings.Book(t.Context(), booking.Caller{ProjectID: "p"}, reservation.Request{
		Terms: reservation.Terms{Quantity: job.Size}, Start: sim.Second(job.Start), Duration: job.Estimate,
	})
	if refusal := (*reservation.Refusal)(nil); errors.As(err, &refusal) {
		l.rejected = true
		return l, nil
	}
	if err != nil {
		return l, err
	}
	var holds []besteffort.Hold
	var nodes []string
	for _, c := range r.Claims {
		holds = append(holds, besteffort.Hold{Node: c.Host, Span: c.Span})
		nodes = append(nodes, c.Host)
	}
	l.nodes = numbers(nodes)
	queue.Hold(r.ID, holds...)
	queue.Timeline.At(sim.Second(l.end), sim.Ending, func() error { queue.Release(r.ID); return nil })
	return l, nil
}

func haizeaOutcomes(t *testing.T, queue *sim.Queue) []leased {
	t.Helper()
	all := map[string]leased{}
	nodes := map[string][][]string{}
	for _, o := range queue.Outcomes() {
		if o.Ended == span.Forever {
			t.Errorf("%s has not ended", o.VM)
			continue
		}
		start, end := int64(started(o)-sim.Second(0)), int64(o.Ended-sim.Second(0))
		if l, other := all[o.Request]; other && (l.start != start || l.end != end) {
			t.Errorf("%s is at %d to %d, another of its lease at %d to %d", o.VM, start, end, l.start, l.end)
		}
		all[o.Request] = leased{id: o.Request, start: start, end: end}
		for i, p := range o.Pieces {
			if i == len(nodes[o.Request]) {
				nodes[o.Request] = append(nodes[o.Request], nil)
			}
			nodes[o.Request][i] = append(nodes[o.Request][i], p.Name)
		}
	}
	for id, l := range all {
		for _, names := range nodes[id] {
			l.nodes += numbers(names)
		}
		all[id] = l
	}
	return slices.Collect(maps.Values(all))
}

// numbers formats the nodes of names with Haizea's numbers, sorted.
func numbers(names []string) string {
	var all []int
	for _, name := range names {
		n, _ := strconv.Atoi(strings.TrimPrefix(name, "h"))
		all = append(all, n+1)
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

// started returns the nodes on which a lease started and continued.
func (o haizeaOutcome) started(id string) (nodes string) {
	for _, e := range o.Events {
		names, ok := strings.CutPrefix(e[1], "Started VMs for lease "+id+" on nodes ")
		if !ok {
			continue
		}
		var all []int
		for name := range strings.SplitSeq(strings.Trim(names, "[]"), ", ") {
			n, _ := strconv.Atoi(name)
			all = append(all, n)
		}
		slices.Sort(all)
		nodes += fmt.Sprint(all)
	}
	return nodes
}

// leases returns the outcomes of Haizea's leases.
func (o haizeaOutcome) leases(t *testing.T) []leased {
	t.Helper()
	second := func(text string) int64 {
		at, err := time.Parse("2006-01-02 15:04:05.00", text)
		if err != nil {
			t.Fatal(err)
		}
		return int64(at.Sub(time.Date(2006, 11, 25, 13, 0, 0, 0, time.UTC)).Seconds())
	}
	var all []leased
	for id, f := range o.Final {
		l := leased{id: id, rejected: f.State != "Done"}
		if !l.rejected {
			l.start, l.end, l.nodes = second(f.Start), second(f.End), o.started(id)
		}
		all = append(all, l)
	}
	return all
}

// clock formats a second of the traces in Haizea's time.
func clock(second int64) string {
	return time.Date(2006, 11, 25, 13, 0, int(second), 0, time.UTC).Format("15:04:05")
}

// ordered returns the ids of the leases in the order of their starts or ends, with = between
// those at one instant.
func ordered(all []leased, at func(leased) int64) string {
	slices.SortFunc(all, func(a, b leased) int { return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a.id, b.id)) })
	var text strings.Builder
	for i, l := range all {
		switch {
		case l.rejected:
			continue
		case i > 0 && at(all[i-1]) == at(l):
			text.WriteByte('=')
		case i > 0:
			text.WriteByte(' ')
		}
		text.WriteString(l.id)
	}
	return text.String()
}

// The reason for each difference between the outcomes.
var haizeaDifferences = map[string]string{
	"migrate/backfill-off":                            "(b)",
	"preemption/backfill-off":                         "(a)",
	"preemption_prematureend/backfill-off":            "(a)",
	"preemption_prematureend2/backfill-off":           "(a)",
	"preemption_prematureend2/backfill-conservative":  "(a)",
	"preemption_prematureend2/backfill-intermediate2": "(a)",
	"preemption_prematureend2/base":                   "(a)",
}

// haizeaReport is the page with the table of the outcomes.
const haizeaReport = "../../docs/reproduction/haizea.md"

var update = flag.Bool("update", false, "write the tables of the reports instead of comparing them")

// Nine workloads under five configurations: the service itself books the reservations, and
// its own planner plans all others.
func TestHaizeasOutcomesComeOutOfItsTraces(t *testing.T) {
	data, reference := haizeaFolder(t)
	traces := haizeaTraces(t, data, "tests/")
	table := []string{"| trace | configuration | starts, ends | last end, ours | Haizea's | leases that differ |", "|---|---|---|---|---|---|"}
	for _, name := range slices.Sorted(maps.Keys(reference.Results)) {
		for _, c := range reference.Configurations {
			ours := haizeaRun(t, traces[name+".lwf"], haizeaRules(t, c))
			theirs := reference.Results[name][c].leases(t)
			if len(ours) != len(theirs) {
				t.Fatalf("%s/%s: there are %d leases; want %d", name, c, len(ours), len(theirs))
			}
			starts, ends := sameOrder(t, name+"/"+c, ours, theirs)
			differ := differences(ours, theirs)
			if why := haizeaDifferences[name+"/"+c]; (why == "") != (differ == "") {
				t.Errorf("%s/%s: the difference is %q, the reason %q", name, c, differ, why)
			} else if why != "" {
				differ += " " + why
			}
			table = append(table, fmt.Sprintf("| %s | %s | %s, %s | %s | %s | %s |", name, c, starts, ends, clock(lastEnd(ours)), clock(lastEnd(theirs)), differ))
		}
	}
	if len(table) != 2+45 {
		t.Errorf("there are %d outcomes; want 45", len(table)-2)
	}
	checkTable(t, haizeaReport, "outcomes", table)
}

// sameOrder fails if leases start or end in the wrong order, or if the wrong ones are rejected.
// It returns the orders.
func sameOrder(t *testing.T, name string, ours, theirs []leased) (starts, ends string) {
	t.Helper()
	order := func(all []leased, at func(leased) int64) string { return ordered(slices.Clone(all), at) }
	start, end := func(l leased) int64 { return l.start }, func(l leased) int64 { return l.end }
	if got, want := order(ours, start), order(theirs, start); got != want {
		t.Errorf("%s: they start in the order %s; want %s", name, got, want)
	}
	if got, want := order(ours, end), order(theirs, end); got != want {
		t.Errorf("%s: they end in the order %s; want %s", name, got, want)
	}
	return order(ours, start), order(ours, end)
}

// differences lists the leases with other times or nodes.
func differences(ours, theirs []leased) string {
	byID := func(a, b leased) int { return cmp.Compare(a.id, b.id) }
	slices.SortFunc(ours, byID)
	slices.SortFunc(theirs, byID)
	var all []string
	for i, want := range theirs {
		got := ours[i]
		if got.start != want.start || got.nodes != want.nodes {
			all = append(all, fmt.Sprintf("%s starts %s on %s, there %s on %s", want.id, clock(got.start), got.nodes, clock(want.start), want.nodes))
		}
		if got.end != want.end {
			all = append(all, fmt.Sprintf("%s ends %s, there %s", want.id, clock(got.end), clock(want.end)))
		}
	}
	return strings.Join(all, "; ")
}

func lastEnd(all []leased) (last int64) {
	for _, l := range all {
		last = max(last, l.end)
	}
	return last
}

// checkTable compares a table of a report with table, or writes it. Two comments with its name
// enclose it.
func checkTable(t *testing.T, path, name string, table []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), "<!-- "+name+" -->\n")
	has, after, ends := strings.Cut(rest, "<!-- end of "+name+" -->")
	want := strings.Join(table, "\n") + "\n"
	switch {
	case !begins || !ends:
		t.Fatalf("%s has no place for the table of %s", path, name)
	case *update:
		whole := before + "<!-- " + name + " -->\n" + want + "<!-- end of " + name + " -->" + after
		if err := os.WriteFile(path, []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
	case has != want:
		t.Errorf("the table of %s in %s is not what comes out; go test -run %s ./pkg/sim -update writes it:\n%s", name, path, t.Name(), want)
	}
}
