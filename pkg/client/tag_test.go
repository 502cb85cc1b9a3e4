// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"io"
	"net/http"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func TestAChangeIsForWhatWasRead(t *testing.T) {
	const now = `"7-0123456789abcdef"`
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if expected := r.Header.Get("If-Match"); expected != "" && expected != now {
			w.WriteHeader(http.StatusPreconditionFailed)
			_, _ = io.WriteString(w, `{"error": {"kind": "precondition", "message": "the reservation has changed since it was read"}}`)
			return
		}
		if r.URL.Path != "/v1/limits" {
			w.Header().Set("ETag", now)
		}
		_, _ = io.WriteString(w, `{}`)
	})
	almanac, err := client.New(client.Options{URL: f.URL})
	if err != nil {
		t.Fatal(err)
	}
	var tag string
	if _, err := almanac.Tagging(&tag).GetReservation(t.Context(), "r"); err != nil || tag != now {
		t.Fatalf("the tag is %q, %v", tag, err)
	}
	for what, c := range map[string]struct {
		tag  string
		kind fault.Kind
	}{"what was read": {tag, ""}, "anything": {"", ""}, "an old version": {`"6-0123456789abcdef"`, fault.Precondition}} {
		of := almanac.Expecting(c.tag)
		for call, do := range map[string]func() error{
			"change": func() error { _, err := of.ChangeReservation(t.Context(), "r", v1.ReservationChange{}); return err },
			"offer":  func() error { _, err := of.OfferChange(t.Context(), "r", v1.ReservationChange{}); return err },
			"delete": func() error { return of.DeleteReservation(t.Context(), "r") },
		} {
			err := do()
			if (err == nil) != (c.kind == "") || err != nil && err.(*client.Error).Kind != c.kind {
				t.Errorf("%s of %s: %v", call, what, err)
			}
			if last := f.requests()[len(f.requests())-1]; last.Header.Get("If-Match") != c.tag {
				t.Errorf("%s of %s sends %q", call, what, last.Header.Get("If-Match"))
			}
		}
	}
	if _, err := almanac.Tagging(&tag).Expecting(tag).Limits(t.Context(), ""); err != nil || tag != "" {
		t.Errorf("an answer without a tag leaves %q, %v", tag, err)
	}
	if last := f.requests()[len(f.requests())-1]; last.Header.Get("If-Match") != "" {
		t.Errorf("a reading expects %q", last.Header.Get("If-Match"))
	}
}
