// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

func TestTheKindSurvivesWrapping(t *testing.T) {
	err := fmt.Errorf("book reservation: %w", fault.Field("quantity", "must be at least 1"))
	got := fault.Of(err)
	if got.Kind != fault.Invalid || got.Field != "quantity" {
		t.Errorf("got kind %q, field %q", got.Kind, got.Field)
	}
}

func TestAnErrorWithoutAKindIsInternalAndKeepsItsCauseFromTheUser(t *testing.T) {
	cause := errors.New("dial 10.0.0.1: refused")
	got := fault.Of(cause)
	if got.Kind != fault.Internal {
		t.Errorf("got kind %q", got.Kind)
	}
	if got.Message == cause.Error() || !errors.Is(got, cause) {
		t.Errorf("the cause belongs in the chain and not in the message %q", got.Message)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"enabled_filters", "transport_url", "connection"}
	for name, want := range map[string]string{
		"conection":                      "connection",
		"transport-url":                  "transport_url",
		"enabled_filter":                 "enabled_filters",
		"CONNECTION":                     "connection",
		"colour":                         "",
		strings.Repeat("connection", 11): "",
	} {
		if got := fault.Nearest(name, known); got != want {
			t.Errorf("nearest to %q: got %q, want %q", name, got, want)
		}
	}
}

func TestWhatWasDoneStandsBeforeTheErrorAndNoErrorStaysNone(t *testing.T) {
	cause := fault.New(fault.Unavailable, "the database is away")
	err := fault.While(cause, "read image %s", "a")
	if !errors.Is(err, cause) || err.Error() != "read image a: the database is away" {
		t.Errorf("got %v", err)
	}
	if err := fault.While(nil, "read image %s", "a"); err != nil {
		t.Errorf("without an error got %v", err)
	}
}

func TestAValueOutsideItsRangeIsNamedWithTheRange(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fault.Within("runs", 1, 1, 10), ""},
		{fault.Within("runs", 11, 1, 10), "runs: is 11; it must be from 1 to 10"},
		{fault.Within("rate", math.NaN(), 0.001, 1e9), "rate: is NaN; it must be from 0.001 to 1000000000"},
	} {
		if got := fmt.Sprint(c.err); got != c.want && (c.err != nil || c.want != "") {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
