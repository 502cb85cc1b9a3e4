package upkeep_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// desk counts what upkeep asks of it.
type desk struct {
	carried, pruned int
	woken           chan struct{}
	fail            error
}

func (d *desk) CarryOut(context.Context) ([]booking.Happening, map[string]error) {
	d.carried++
	if d.fail != nil {
		return nil, map[string]error{"r-3": d.fail, "r-2": fmt.Errorf("carry out end of reservation r-2: %w", d.fail)}
	}
	return []booking.Happening{{
		Reservation: reservation.Reservation{ID: "r-1", ProjectID: "p", Status: reservation.Active},
		Event:       reservation.Event{Type: reservation.StartEvent, Time: 100, Done: 103},
	}}, nil
}

func (d *desk) Prune()                 { d.pruned++ }
func (d *desk) Woken() <-chan struct{} { return d.woken }

type keys struct{ before span.Instant }

func (k *keys) PurgeKeys(_ context.Context, before span.Instant) (int, error) {
	k.before = before
	return 0, nil
}

func TestWhatIsDueIsLookedForEveryPollAndWhenWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d, k := &desk{woken: make(chan struct{}, 1)}, &keys{}
		var log bytes.Buffer
		for _, j := range upkeep.Jobs(upkeep.Options{
			Desk: d, Keys: k, Poll: 10 * time.Second, KeyTTL: time.Hour,
			Now: func() span.Instant { return 10_000 }, Log: slog.New(slog.NewTextHandler(&log, nil)),
		}) {
			go j.Run(ctx, slog.New(slog.DiscardHandler))
		}
		time.Sleep(25 * time.Second) // the bubble's clock: steps at 0, 10 and 20 s
		synctest.Wait()
		if d.carried != 3 || d.pruned != 1 || k.before != 10_000-3600 {
			t.Errorf("carried out %d times, pruned %d times, keys purged before %d", d.carried, d.pruned, k.before)
		}
		d.woken <- struct{}{}
		synctest.Wait()
		if d.carried != 4 {
			t.Errorf("carried out %d times after it was woken", d.carried)
		}
		cancel()
		synctest.Wait()
		for _, want := range []string{"event=start", "reservation=r-1", "status=active", "late_seconds=3"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %s:\n%s", want, log.String())
			}
		}
	})
}

func TestAFailedEventIsReported(t *testing.T) {
	d := &desk{fail: errors.New("disk full")}
	for _, j := range upkeep.Jobs(upkeep.Options{Desk: d, Keys: &keys{}, Now: func() span.Instant { return 0 }, Log: slog.New(slog.DiscardHandler)}) {
		if j.Name != "events" {
			continue
		}
		if err := j.Step(t.Context()); !errors.Is(err, d.fail) || !strings.HasPrefix(err.Error(), "carry out end of reservation r-2") {
			t.Errorf("error %v, want the cause and the reservation", err)
		}
	}
}
