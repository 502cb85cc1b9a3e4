// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// trouble is a Reader that always fails.
type trouble func() error

func (f trouble) Get(context.Context, string) (reservation.Reservation, error) {
	return reservation.Reservation{}, f()
}

func (f trouble) List(context.Context, reservation.Query) ([]reservation.Reservation, error) {
	return nil, f()
}

func TestWhatGoesWrongInsideStaysInside(t *testing.T) {
	for name, reader := range map[string]trouble{
		"a panic":             func() error { panic("the secret of the reader") },
		"a panic of an error": func() error { panic(errors.New("the secret of the reader")) },
		"an error":            func() error { return errors.New("the secret of the reader") },
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, setup{adjust: func(o *api.Options) { o.Reader = reader }})
			for _, path := range []string{"/v1/reservations", "/v1/reservations/x"} {
				a := c.demo.get(path)
				e := wantError(t, a, http.StatusInternalServerError)
				if strings.Contains(a.String(), "secret") || e.Message != "something went wrong inside Almanac; report the request id to your operator" {
					t.Errorf("got %v", a)
				}
				if log := c.log.String(); !strings.Contains(log, "the secret of the reader") || !strings.Contains(log, "request_id="+e.RequestID) {
					t.Errorf("the operator does not find it:\n%s", log)
				}
			}
			c.demo.book(`{"name": "r", "duration": 60}`) // the server still serves
		})
	}
}

func TestNothingBeginsWhenTheClientHasHungUp(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "r", "duration": 3600}`)
	path, before := "/v1/reservations/"+r.ID, c.everything()
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	for _, call := range [][3]string{
		{"POST", "/v1/reservations", `{"name": "r", "duration": 60}`}, {"PATCH", path, `{"name": "y"}`}, {"DELETE", path},
	} {
		wantError(t, c.demo.serve(gone, call[0], call[1], call[2]), http.StatusServiceUnavailable)
	}
	if diff := cmp.Diff(before, c.everything()); diff != "" {
		t.Errorf("something was stored:\n%s", diff)
	}
	if strings.Contains(c.log.String(), "ERROR") {
		t.Errorf("the log has an error:\n%s", c.log)
	}
	if a := c.demo.delete(path); a.status != http.StatusNoContent { // and nothing blocks the deletion
		t.Errorf("afterwards: %v", a)
	}
}

// interrupted are records whose client hangs up while they store.
type interrupted struct {
	*store.Store
	hangUp context.CancelFunc
}

func (i interrupted) Commit(ctx context.Context, c booking.Commit) error {
	err := i.Store.Commit(ctx, c)
	i.hangUp()
	<-ctx.Done()
	return err
}

func TestWhatHasBegunIsFinishedWhenTheClientHangsUp(t *testing.T) {
	gone, hangUp := context.WithCancel(t.Context())
	c := start(t, setup{adjust: func(o *api.Options) { with(t, interrupted{o.Reader.(*store.Store), hangUp})(o) }})
	r := want[v1.Reservation](t, c.demo.serve(gone, "POST", "/v1/reservations", `{"name": "r", "duration": 60}`), http.StatusCreated)
	if stored := c.stored(); len(stored) != 1 || stored[0].ID != r.ID {
		t.Errorf("stored are %v", stored)
	}
}

func TestADatabaseThatIsHeldByAnotherIsToldAndTriedAgain(t *testing.T) {
	c := start(t, setup{busy: 20 * time.Millisecond})
	r := c.demo.book(`{"name": "r", "duration": 3600}`)
	path, before := "/v1/reservations/"+r.ID, c.everything()
	release := c.holdDatabase()
	for name, a := range map[string]answer{
		"create": c.demo.retry("one", `{"name": "r", "quantity": 2, "duration": 3600}`),
		"change": c.demo.patch(path, `{"quantity": 3}`),
		"delete": c.demo.delete(path),
		"host":   c.admin.patch("/v1/hosts/A", `{"reservable": false}`),
		"hide":   c.admin.patch("/v1/properties/vcpus", `{"hidden": true}`),
	} {
		e := wantError(t, a, http.StatusServiceUnavailable)
		if a.header.Get("Retry-After") != "1" || !strings.Contains(e.Message, "busy") {
			t.Errorf("%s: Retry-After is %q, the message %q", name, a.header.Get("Retry-After"), e.Message)
		}
	}
	if got := want[v1.Reservation](t, c.demo.get(path), http.StatusOK); got.Quantity != 1 {
		t.Errorf("meanwhile GET shows %+v", got)
	}
	release()
	if diff := cmp.Diff(before, c.everything()); diff != "" {
		t.Errorf("something was stored:\n%s", diff)
	}
	for _, host := range want[v1.Calendar](t, c.admin.get("/v1/calendar?host=B,C"), http.StatusOK).Hosts {
		if len(host.Claims) > 0 {
			t.Errorf("%s is still held for the failed booking: %v", host.Host, host.Claims)
		}
	}
	want[v1.Reservation](t, c.demo.retry("one", `{"name": "r", "quantity": 2, "duration": 3600}`), http.StatusCreated)
	if a := c.demo.delete(path); a.status != http.StatusNoContent {
		t.Errorf("it did not recover: %v", a)
	}
}

// holdDatabase locks the database from outside until release.
func (c *cloud) holdDatabase() (release func()) {
	c.t.Helper()
	db, err := sql.Open("sqlite", c.file)
	must(c.t, err)
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(c.t.Context(), "BEGIN IMMEDIATE")
	must(c.t, err)
	return func() {
		_, err := db.ExecContext(c.t.Context(), "ROLLBACK")
		must(c.t, errors.Join(err, db.Close()))
	}
}
