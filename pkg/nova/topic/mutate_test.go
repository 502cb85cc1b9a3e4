// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/weighers"
)

// publish sends arbitrary bytes to the topic.
func publish(t testing.TB, b *bench, body []byte) {
	t.Helper()
	err := b.broker.Publish(t.Context(), oslo.Message{
		Exchange: oslo.Exchange{Name: topic.Exchange, Kind: oslo.Topic}, Key: topic.Topic, Body: body,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// replyQueue receives the answers to frames.
const replyQueue = "reply_of_the_frames"

// frame is a message as the broker delivers it, with the positions of its values and names.
type frame struct {
	inner         string
	values, names [][]int
}

// In JSON without white space, a name is a string before a colon.
var value, name = regexp.MustCompile(`[:,\[]("(?:[^"\\]|\\.)*"|-?[0-9]+|null|true|false|\[\]|\{\})[,\]}]`), regexp.MustCompile(`("[^"]*"):`)

// frames returns the captured requests and casts.
func frames(t testing.TB) (all []frame) {
	t.Helper()
	for _, m := range append(captured(t, "select_destinations-*request"), captured(t, "scheduler_fanout-*")...) {
		inner, err := json.Marshal(map[string]any{
			"method": m.Method, "version": m.Version, "args": m.Args, "_msg_id": "0123", "_reply_q": replyQueue, "_timeout": 60,
			"_context_request_id": "req-1", "_context_project_id": demo, "_context_roles": []string{"member"}, "_context_is_admin": false,
		})
		if err != nil {
			t.Fatal(err)
		}
		f := frame{inner: strings.ReplaceAll(string(inner), "0f6c7a2e-5a52-4c64-9f0c-2d5a9a1b7c33", "own")}
		f.values, f.names = value.FindAllStringSubmatchIndex(f.inner, -1), name.FindAllStringSubmatchIndex(f.inner, -1)
		all = append(all, f)
	}
	return all
}

func sealed(t testing.TB, inner string) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]string{"oslo.version": "2.0", "oslo.message": inner})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Replacements for a value or a name.
var (
	oddNames  = strings.Fields(`"" "x" "reservation" "hw:numa_nodes" "resources:VCPU" "trait:X" "\u0000" "nova_object.data" "args" "version" 5`)
	oddValues = append(strings.Fields(`null true 0 -1 1.5 1e400 99999999999999999999 "4.9" "foreign" "required" "\ud800" [] {} [[[[]]]] {"":null} [null] `+
		`["own"] {"nova_object.data":{}} {"reservation":["own"]} } ]`), oddNames...)
)

// mutated returns the frame with some of its values, a name or bytes changed.
func (f frame) mutated(t testing.TB, random *rand.Rand) []byte {
	t.Helper()
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	inner := f.inner
	if random.IntN(8) == 0 {
		at := f.names[random.IntN(len(f.names))]
		return sealed(t, inner[:at[2]]+pick(oddNames)+inner[at[3]:])
	}
	end := len(f.values)
	for range 1 + random.IntN(3) { // from the end, so that the positions stay right
		if end = random.IntN(max(1, end)); end < len(f.values) {
			at := f.values[end]
			inner = inner[:at[2]] + pick(oddValues) + inner[at[3]:]
		}
		if end == 0 {
			break
		}
	}
	body := sealed(t, inner)
	if random.IntN(8) == 0 {
		for range 1 + random.IntN(4) {
			body[random.IntN(len(body))] ^= byte(1 << random.IntN(8))
		}
		body = body[:len(body)-random.IntN(2)*random.IntN(len(body))]
	}
	return body
}

// generous is a Placement that grants everything and keeps nothing.
type generous struct{}

func (generous) Claim(context.Context, []placing.Claim) error { return nil }
func (generous) AllocationsOf(_ context.Context, consumer string) (placing.Claim, error) {
	return placing.Claim{Consumer: consumer}, nil
}
func (generous) Release(context.Context, []placing.Claim) error { return nil }
func (generous) Look(context.Context, []string) error           { return nil }

// options returns the options of mode interpose, or of replace with everything that decides
// there.
func options(t testing.TB, mode string) topic.Options {
	t.Helper()
	answer := json.RawMessage(`[[{"host":"cmp-007","nodename":"cmp-007","limits":{}}]]`)
	o := topic.Options{Behind: &behind{answer: func(spec json.RawMessage) (json.RawMessage, error) {
		if !json.Valid(spec) {
			return nil, &oslo.RemoteError{Class: "ValueError", Module: "json", Message: string(spec)}
		}
		return answer, nil
	}}}
	if mode == "interpose" {
		return o
	}
	board := inventory.NewLiveState()
	board.Replace(board.BeginRead(), cloud(t), nil)
	list, err := filters.New(append(slices.Clone(filters.Enabled), "AvailabilityZoneFilter"), filters.Options{
		OwnTraits: fence.OwnPrefix, DefaultAvailabilityZone: "nova", EnableIsolatedAggregateFiltering: true,
		Reservation: filters.Reservation{Promises: promised, Fence: filters.FenceAlways, Class: fence.OwnName},
	})
	if err != nil {
		t.Fatal(err)
	}
	weighted, err := weighers.Choose([]string{"CPUWeigher", "RAMWeigher", "DiskWeigher", "IoOpsWeigher", "BuildFailureWeigher"}, nil, weighers.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	o.Filters, o.States = list, board.Load
	evictor := eviction.New(eviction.Options{Board: board, Placement: generous{}, Looker: generous{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	o.Placer = dispatch.New(dispatch.Options{
		Board: board, Planner: &scheduler.Pipeline{Filters: list, Weighers: weighted, SubsetSize: 1}, Placement: generous{}, Looker: generous{},
		Evictor: evictor, Decisions: &kept{}, Now: time.Now, Draw: func(int) int { return 0 }, Log: slog.New(slog.DiscardHandler),
	})
	return o
}

// alarm keeps what must not happen. As a log handler it keeps panics.
type alarm struct {
	slog.Handler
	mu   sync.Mutex
	said []string
}

func (a *alarm) say(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = append(a.said, text)
}

func (a *alarm) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "panic") {
		text := r.Message
		r.Attrs(func(attr slog.Attr) bool {
			text += "\n" + attr.String()
			return true
		})
		a.say(text)
	}
	return nil
}

func (a *alarm) Enabled(context.Context, slog.Level) bool { return true }

// besieged is a service that receives arbitrary frames.
type besieged struct {
	*bench
	alarm   *alarm
	mu      sync.Mutex
	answers map[string]int // "result", or MODULE.CLASS
}

func besiege(t testing.TB, mode string) *besieged {
	t.Helper()
	b := &besieged{alarm: &alarm{}, answers: map[string]int{}}
	o := options(t, mode)
	o.Log = slog.New(b.alarm)
	b.bench = serve(t, o)
	go func() {
		for range b.changes {
		}
	}()
	subscription, err := b.broker.Subscribe(t.Context(), []oslo.Queue{{Name: replyQueue}}, 1, func(d oslo.Delivery) {
		b.note(d.Body)
		_ = d.Ack()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		subscription.Close()
		close(b.changes)
	})
	return b
}

// note counts an answer: a result, an exception that Nova knows, or the exception for a message
// that is no request.
func (b *besieged) note(body []byte) {
	var outer struct {
		Message string `json:"oslo.message"`
	}
	var inner struct {
		Failure *string
		Ending  bool
	}
	var f struct{ Class, Module, Message string }
	if json.Unmarshal(body, &outer) != nil || json.Unmarshal([]byte(outer.Message), &inner) != nil || !inner.Ending {
		b.alarm.say(fmt.Sprintf("a frame is answered with %q", body))
		return
	}
	kind := "result"
	if inner.Failure != nil {
		_ = json.Unmarshal([]byte(*inner.Failure), &f) // otherwise it has no class
		kind = f.Module + "." + f.Class
	}
	switch kind {
	case "result", novaException + ".NoValidHost", dispatcher + ".NoSuchMethod", dispatcher + ".UnsupportedVersion", "almanac.fault.Invalid":
	default:
		b.alarm.say(fmt.Sprintf("a frame is answered with %s: %s", kind, f.Message))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[kind]++
}

// withstand fails unless the service still answers.
func (b *besieged) withstand(t testing.TB) {
	t.Helper()
	if _, err := b.call(t, oslo.Target{Namespace: "baseapi", Version: "1.0"}, "ping", nil); err != nil {
		t.Fatalf("the service does not answer any more: %v", err)
	}
	b.alarm.mu.Lock()
	defer b.alarm.mu.Unlock()
	if len(b.alarm.said) > 0 {
		t.Fatal(b.alarm.said[0])
	}
}

func TestTenThousandMutatedFramesAreAnsweredOrDropped(t *testing.T) {
	const count = 5_000 // in each mode
	for _, mode := range []string{"interpose", "replace"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b, all, random := besiege(t, mode), frames(t), rand.New(rand.NewPCG(5, 6))
			for i := range count {
				publish(t, b.bench, all[i%len(all)].mutated(t, random))
				if i%100 == 99 {
					b.withstand(t)
				}
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			t.Logf("answers to %d frames: %v", count, b.answers)
			for kind, least := range map[string]int{
				"result": count / 10, novaException + ".NoValidHost": count / 10, dispatcher + ".UnsupportedVersion": 5,
				dispatcher + ".NoSuchMethod": 5, "almanac.fault.Invalid": 5,
			} {
				if b.answers[kind] < least {
					t.Errorf("%d are answered with %s: the mutations are too rough or too gentle", b.answers[kind], kind)
				}
			}
		})
	}
}

func FuzzFrame(f *testing.F) {
	for _, frame := range frames(f) {
		f.Add(sealed(f, frame.inner))
	}
	modes := []*besieged{besiege(f, "interpose"), besiege(f, "replace")}
	f.Fuzz(func(t *testing.T, frame []byte) {
		for _, b := range modes {
			publish(t, b.bench, frame)
			b.withstand(t)
		}
	})
}
