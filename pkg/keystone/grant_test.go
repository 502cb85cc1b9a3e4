// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/openstack"
)

func TestATokenIsHeldUntilAMinuteBeforeItsEndOrItsRefusal(t *testing.T) {
	clock, logins := time.Unix(1_700_000_000, 0), 0
	var failure error
	h := newHolder(func() time.Time { return clock }, func(context.Context) (grant, error) {
		logins++
		if failure != nil {
			return grant{}, failure
		}
		return grant{token: strconv.Itoa(logins), expires: clock.Add(time.Hour)}, nil
	})
	refusal := &openstack.Answer{Status: http.StatusUnauthorized}
	for _, step := range []struct {
		name    string
		passes  time.Duration
		failure error
		stale   string
		want    string // token; empty means an error
		logins  int
	}{
		{"the first use", 0, nil, "", "1", 1},
		{"while it is valid", 58 * time.Minute, nil, "", "1", 1},
		{"another token was refused", 0, nil, "0", "1", 1},
		{"less than a minute before its end", 61 * time.Second, nil, "", "2", 2},
		{"it was refused", 0, nil, "2", "3", 3},
		{"it was refused, and there is no answer", 0, errors.New("no answer"), "3", "", 4},
		{"it is still there for others", 0, nil, "", "3", 4},
		{"it was refused, and so is the login", 0, refusal, "3", "", 5},
		{"after a refused login", 0, nil, "", "6", 6},
	} {
		clock, failure = clock.Add(step.passes), step.failure
		g, err := h.get(t.Context(), step.stale)
		if g.token != step.want || (err == nil) != (step.want != "") || logins != step.logins {
			t.Errorf("%s: token %q, error %v and %d logins, want %q and %d", step.name, g.token, err, logins, step.want, step.logins)
		}
	}
	h.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.get(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("behind another login: %v", err)
	}
}
