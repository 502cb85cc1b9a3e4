// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// The test sends orders of two controllers at random, repeatedly and late, to an agent that is
// killed now and then, on a machine that is fast or slow. The oracle is a list: what the machine
// did must be accepted orders, each at most once in the life of an agent, in the order of (epoch,
// number).
func TestWhateverComesNoOrderIsCarriedOutTwiceNorAfterANewerOne(t *testing.T) {
	folder := t.TempDir()
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		file := filepath.Join(folder, fmt.Sprint(round))
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, file: file, machine: &recorder{machine: machine{state: energy.On}}, said: map[string]energy.Outcome{}, accepted: map[string]bool{}}
			w.start()
			defer func() { w.stop() }()
			for range rapid.IntRange(1, 40).Draw(r, "steps") {
				switch rapid.SampledFrom([]string{"new", "new", "again", "old", "pass", "kill"}).Draw(r, "step") {
				case "new":
					w.epoch += int64(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(r, "epoch"))
					w.number++
					state := rapid.SampledFrom([]energy.State{energy.On, energy.Off}).Draw(r, "state")
					w.machine.setTakes(time.Duration(rapid.IntRange(0, 20).Draw(r, "takes")) * time.Second)
					w.send(energy.Order{
						ID: fmt.Sprint("order-", len(w.sent)), Epoch: w.epoch, Number: w.number, Host: "h1", State: state,
						Patience: int64(len(w.sent)), Deadline: at(int64(rapid.IntRange(-1, 30).Draw(r, "deadline"))),
					})
				case "again":
					if len(w.sent) > 0 {
						w.send(w.sent[rapid.IntRange(0, len(w.sent)-1).Draw(r, "which")])
					}
				case "old":
					if len(w.sent) > 0 {
						o := w.sent[rapid.IntRange(0, len(w.sent)-1).Draw(r, "which")]
						o.ID, o.Patience = fmt.Sprint("order-", len(w.sent)), int64(len(w.sent))
						w.send(o)
					}
				case "pass":
					time.Sleep(time.Duration(rapid.IntRange(0, 30).Draw(r, "seconds")) * time.Second)
					synctest.Wait()
				case "kill":
					w.stop()
					w.start()
				}
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			w.check()
		})
		_ = os.Remove(file)
	})
}

// recorder is a machine that records the order of each Switch, by its patience.
type recorder struct {
	machine
	takes time.Duration
	began []int64
}

func (m *recorder) setTakes(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.takes = d
}

func (m *recorder) Switch(ctx context.Context, to energy.State, how power.PowerOffMode) error {
	m.mu.Lock()
	takes := m.takes
	m.began = append(m.began, int64(how.Patience/time.Second))
	m.mu.Unlock()
	if err := job.Pause(ctx, takes); err != nil {
		return err
	}
	return m.machine.Switch(ctx, to, how)
}

// world is an agent and its controllers.
type world struct {
	t             *testing.T
	file          string
	machine       *recorder
	agent         *power.Agent
	stop          func()
	epoch, number int64
	sent          []energy.Order
	said          map[string]energy.Outcome // the last outcome of each order
	accepted      map[string]bool
	begunBefore   int // how many Switches the machine had begun before the agent started
}

func (w *world) start() {
	w.checkLife()
	w.begunBefore = len(w.machine.began)
	w.agent, w.stop = agentFor(w.t, w.file, w.machine)
	synctest.Wait()
}

// send sends an order and checks the outcome against the earlier one.
func (w *world) send(o energy.Order) {
	w.t.Helper()
	got := give(w.t, w.agent, o)
	if int(o.Patience) == len(w.sent) {
		w.sent = append(w.sent, o)
	}
	was := w.said[o.ID]
	switch {
	case w.accepted[o.ID] && was.Progress != energy.OrderAccepted && was != got && len(w.sent)-int(o.Patience) < 3:
		w.t.Errorf("order %s was %v and is %v", o.ID, was, got)
	case was.Progress == energy.OrderRefused && got.Progress != energy.OrderRefused:
		w.t.Errorf("order %s was refused and is %v", o.ID, got)
	}
	w.said[o.ID] = got
	w.accepted[o.ID] = w.accepted[o.ID] || got.Progress == energy.OrderAccepted
}

// checkLife checks that the last agent has begun each order at most once.
func (w *world) checkLife() {
	begun := map[int64]bool{}
	for _, which := range w.machine.began[w.begunBefore:] {
		if begun[which] {
			w.t.Errorf("order %d was carried out twice", which)
		}
		begun[which] = true
	}
}

func (w *world) check() {
	w.checkLife()
	var last energy.Order
	for _, which := range w.machine.began {
		o := w.sent[which]
		if !w.accepted[o.ID] {
			w.t.Errorf("order %s was carried out and never accepted", o.ID)
		}
		if cmp.Or(cmp.Compare(o.Epoch, last.Epoch), cmp.Compare(o.Number, last.Number)) < 0 {
			w.t.Errorf("order %s (%d, %d) was begun after (%d, %d)", o.ID, o.Epoch, o.Number, last.Epoch, last.Number)
		}
		last = o
	}
	for _, o := range w.sent {
		if got := give(w.t, w.agent, o); got.Progress == energy.OrderAccepted {
			w.t.Errorf("order %s is still under way", o.ID)
		}
	}
}
