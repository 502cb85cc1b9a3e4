// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/tests/oslotest"
	"github.com/almanac-cloud/almanac/tests/oslotest/memory"
)

// demo is the project of the captured requests, now the current time.
const (
	demo = "70fbf4299a9a44a8b66a0cfa24715f26"
	now  = span.Instant(1000)
)

// promised are the reservations. cmp-001 to cmp-005 are in the fence; cmp-006 is promised and not
// in the fence yet; cmp-007 and cmp-008 are free.
var promised = promises{
	"own":      {ProjectID: demo, Status: reservation.Active, Span: running, Claims: claims(running, 0, "cmp-001", "cmp-002")},
	"own-new":  {ProjectID: demo, Status: reservation.Active, Span: running, Claims: claims(running, 0, "cmp-002")},
	"foreign":  {ProjectID: "somebody", Status: reservation.Active, Span: running, Claims: claims(running, 0, "cmp-003")},
	"later":    {ProjectID: demo, Status: reservation.Pending, Span: ahead, Claims: claims(ahead, 0, "cmp-004", "cmp-006")},
	"starting": {ProjectID: demo, Status: reservation.Starting, Span: running},
	"ending":   {ProjectID: demo, Status: reservation.Ending, Span: over},
	"overdue":  {ProjectID: demo, Status: reservation.Active, Span: over},
	"shared": {ProjectID: demo, Status: reservation.Active, Span: running, Claims: claims(running, 2, "cmp-005"), Terms: reservation.Terms{
		Kind: reservation.Instances, Quantity: 2, Resources: resource.Vector{VCPUs: 1, MemoryMB: 512, DiskGB: 1},
	}},
}

var running, ahead, over = span.Span{Start: 500, End: 2000}, span.Span{Start: 5000, End: 6000}, span.Span{Start: 500, End: 900}

type promises map[string]reservation.Reservation

func claims(s span.Span, slices int, hosts ...string) (list []reservation.Claim) {
	for _, host := range hosts {
		list = append(list, reservation.Claim{Host: host, Span: s, Slices: slices})
	}
	return list
}

func (p promises) Reservation(id string) (reservation.Reservation, bool) {
	r, there := p[id]
	r.ID = id
	if r.Kind == "" {
		r.Kind = reservation.Hosts
	}
	return r, there
}

func (p promises) Promised(t span.Instant) (list []reservation.Claim) {
	seen := map[string]bool{}
	for _, r := range p {
		for _, c := range r.Claims {
			if !seen[c.Host] && c.Span.End > t {
				seen[c.Host] = true
				list = append(list, reservation.Claim{Host: c.Host, Span: c.Span})
			}
		}
	}
	return list
}

// cloud returns the states of eight hosts, each with plenty of room. own-new has no aggregate
// yet.
func cloud(t testing.TB) *inventory.States {
	t.Helper()
	var rows []inventory.HostState
	for _, name := range []string{"cmp-001", "cmp-002", "cmp-003", "cmp-004", "cmp-005", "cmp-006", "cmp-007", "cmp-008"} {
		provider := "00000000-0000-4000-8000-000000000" + name[4:]
		row := inventory.HostState{Name: name, Node: name, Provider: provider, Cell: "cell-1", Zone: "nova", Up: true, Enabled: true, Stocks: map[string]inventory.Stock{}}
		for _, class := range []string{"VCPU", "MEMORY_MB", "DISK_GB", fence.OwnName("shared")} {
			row.Stocks[class] = inventory.Stock{Provider: provider, Total: 1 << 40, Ratio: 1, Min: 1, Max: 1 << 40, Step: 1}
		}
		if name < "cmp-006" {
			row.Traits = []string{fence.Reserved, fence.Shared, fence.OwnName("own"), fence.OwnName("own-new")}
		}
		rows = append(rows, row)
	}
	states, err := inventory.NewStates(rows, []inventory.Aggregate{
		{ID: 1, UUID: "agg-fence", Name: fence.Aggregate, Hosts: []string{"cmp-001", "cmp-002", "cmp-003", "cmp-004", "cmp-005"}},
		{ID: 2, UUID: "agg-own", Name: fence.AggregatePrefix + "own", Hosts: []string{"cmp-001", "cmp-002", "cmp-003"}},
		{ID: 3, UUID: "agg-shared", Name: fence.AggregatePrefix + "shared", Hosts: []string{"cmp-005"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return states
}

// behind is a nova-scheduler that keeps its requests and answers by answer.
type behind struct {
	answer func(spec json.RawMessage) (json.RawMessage, error)

	mu    sync.Mutex
	specs []json.RawMessage
	casts []string // METHOD VERSION ARGS
}

func (b *behind) Call(_ context.Context, target oslo.Target, method string, args, result any) error {
	if target != (oslo.Target{Exchange: "nova", Topic: "scheduler", Version: "4.5"}) || method != "select_destinations" {
		return errors.New("nova-scheduler is asked in another way than Nova asks it")
	}
	spec := args.(map[string]json.RawMessage)["spec_obj"]
	b.mu.Lock()
	b.specs = append(b.specs, spec)
	b.mu.Unlock()
	answer, err := b.answer(spec)
	*result.(*json.RawMessage) = answer
	return err
}

func (b *behind) Fanout(_ context.Context, target oslo.Target, method string, args any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.casts = append(b.casts, method+" "+target.Version+" "+string(args.(json.RawMessage)))
	return nil
}

func (b *behind) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.casts)
}

func (b *behind) has(cast string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(b.casts, cast)
}

// placer fails, or places every instance on cmp-007.
type placer struct{ err error }

func (p placer) Place(_ context.Context, r *placing.Request) (d dispatch.Placed, err error) {
	for range r.Instances {
		d.Selections = append(d.Selections, []dispatch.Selection{{Host: &inventory.HostState{Name: "cmp-007", Node: "cmp-007", Cell: "cell-1"}}})
	}
	return d, p.err
}

func (placer) Return(dispatch.Placed) {}

// kept holds the decisions.
type kept struct {
	mu   sync.Mutex
	list []placing.Decision
}

func (k *kept) Keep(d placing.Decision) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, d)
}

// bench is a service on its topic, and a conductor that calls it.
type bench struct {
	broker  *memory.Broker
	client  *oslo.Client
	kept    kept
	changes chan struct{}
}

// serve runs the service until the test ends. By default it is in mode replace without a
// nova-scheduler behind, on cloud's hosts.
func serve(t testing.TB, o topic.Options) *bench {
	t.Helper()
	b := &bench{broker: memory.New(), changes: make(chan struct{}, 10)}
	states := cloud(t)
	if o.States == nil {
		o.States = func() *inventory.States { return states }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Promises = filters.Reservation{Promises: promised, Fence: filters.FenceAlways, Class: fence.OwnName}
	o.Rule, o.Alternates, o.Decisions = inventory.PreemptibleRule{ExtraSpec: "preemptible", Hint: "preemptible"}, 2, &b.kept
	if o.Freed == nil {
		o.Freed = func(string) {}
	}
	if o.Started == nil {
		o.Started = func(string) {}
	}
	o.Changed = func() { b.changes <- struct{}{} }
	o.Now = func() span.Instant { return now }
	if o.Elapsed == nil {
		o.Elapsed = func() time.Duration { return 0 }
	}
	answers := &topic.Service{Options: o}
	server := oslo.NewServer(b.broker, oslo.ServerOptions{
		Exchange: topic.Exchange, Topic: topic.Topic, Name: "almanac", Endpoints: answers.Endpoints(), Workers: 1,
		Grace: 10 * time.Millisecond, NewID: oslotest.NewID, Log: o.Log,
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	<-server.Ready()
	b.client = oslo.NewClient(b.broker, oslo.ClientOptions{Timeout: 2 * time.Minute, NewID: oslotest.NewID, Now: time.Now})
	t.Cleanup(func() {
		b.client.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		b.broker.Close()
	})
	return b
}

// call calls a method of the topic.
func (b *bench) call(t testing.TB, target oslo.Target, method string, args any) (answer json.RawMessage, err error) {
	t.Helper()
	target.Exchange, target.Topic = topic.Exchange, topic.Topic
	ctx := oslo.WithContext(t.Context(), oslo.NewRequestContext("req-1", ""))
	err = b.client.Call(ctx, target, method, args, &answer)
	return answer, err
}

// ask asks for hosts.
func (b *bench) ask(t testing.TB, args map[string]any) (answer json.RawMessage, err error) {
	t.Helper()
	return b.call(t, oslo.Target{Version: "4.5"}, "select_destinations", args)
}

// message is a captured message, without its context.
type message struct {
	Method  string          `json:"method"`
	Version string          `json:"version"`
	Args    json.RawMessage `json:"args"`
}

// captured returns messages of testdata of package object by the names of their files.
func captured(t testing.TB, pattern string) (all []message) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "object", "testdata", pattern+".json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures %s: %v", pattern, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// fields are some of an object's data.
type fields map[string]any

// args returns the captured arguments for one instance, with fields of the RequestSpec and extra
// specs of the flavor set. They have no hints by default.
func args(t testing.TB, set fields, extraSpecs map[string]string) map[string]any {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(captured(t, "select_destinations-request")[0].Args, &all); err != nil {
		t.Fatal(err)
	}
	data := all["spec_obj"].(map[string]any)["nova_object.data"].(map[string]any)
	data["scheduler_hints"] = map[string]any{}
	for name, value := range set {
		data[name] = value
	}
	if flavor, is := data["flavor"].(map[string]any); is && extraSpecs != nil {
		flavor["nova_object.data"].(map[string]any)["extra_specs"] = extraSpecs
	}
	return all
}

func hint(values ...string) fields {
	return fields{"scheduler_hints": map[string]any{placing.ReservationHint: values}}
}

// read returns the request of a RequestSpec.
func read(t testing.TB, spec json.RawMessage) placing.Request {
	t.Helper()
	s, err := object.ReadRequestSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := s.Request(object.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var noAnswer = fault.New(fault.Unavailable, "no answer in time from 10.1.2.3")

func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var text bytes.Buffer
	if err := json.Compact(&text, raw); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
