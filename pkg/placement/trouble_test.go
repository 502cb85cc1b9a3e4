// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

const (
	readTraits  = "GET /resource_providers/{id}/traits"
	writeTraits = "PUT /resource_providers/{id}/traits"
)

// behind returns a client and the proxy between it and Placement.
func behind(t *testing.T) (*placement.Client, *labtest.Meddler) {
	t.Helper()
	m := labtest.Interpose(t, labtest.Keystone(t).REST(t, labtest.Almanac).Endpoint("placement"))
	return newClient(t, m.URL), m
}

// refusal is an answer from Placement itself.
func refusal(status int, body string) labtest.Wrong {
	return func(_ *labtest.Meddler, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

var overtaken = refusal(http.StatusConflict, `{"errors": [{"detail": "generation conflict", "code": "placement.concurrent_update"}]}`)

func TestAChangeThatAnotherOvertakesIsDoneAnew(t *testing.T) {
	for _, wrong := range []labtest.Wrong{
		overtaken,
		refusal(http.StatusInternalServerError, `{"errors": [{"detail": "Another thread concurrently updated the data"}]}`),
	} {
		g := newGround(t)
		client, m := behind(t)
		m.MeddleTimes(2, writeTraits, wrong)
		g.must(client.ChangeTraits(t.Context(), g.provider, []string{"COMPUTE_NODE"}, nil))
		if m.Count(writeTraits) != 3 || !slices.Equal(g.traits(), []string{"COMPUTE_NODE"}) {
			t.Errorf("after %d writes the provider has %v", m.Count(writeTraits), g.traits())
		}
	}
}

func TestAChangeThatIsAlwaysOvertakenEnds(t *testing.T) {
	g := newGround(t)
	client, m := behind(t)
	m.Meddle(writeTraits, overtaken)
	err := client.ChangeTraits(t.Context(), g.provider, []string{"COMPUTE_NODE"}, nil)
	if !fault.Is(err, fault.Conflict) || m.Count(writeTraits) != 10 {
		t.Errorf("got %v after %d attempts, want a conflict after 10", err, m.Count(writeTraits))
	}
}

func TestAWriteThatPlacementCannotDoNowIsNotSentAgain(t *testing.T) {
	g := newGround(t)
	for _, wrong := range []labtest.Wrong{labtest.Status(http.StatusServiceUnavailable), labtest.Cut, labtest.Lose} {
		client, m := behind(t)
		m.Meddle(writeTraits, wrong)
		err := client.ChangeTraits(t.Context(), g.provider, []string{"COMPUTE_NODE"}, nil)
		if !fault.Is(err, fault.Unavailable) || m.Count(writeTraits) != 1 {
			t.Errorf("got %v after %d attempts, want an unavailable fault after 1", err, m.Count(writeTraits))
		}
	}
}

// If the client read such an answer as no traits, it would remove the traits of others.
func TestNothingIsWrittenAfterAnAnswerThatMakesNoSense(t *testing.T) {
	g := newGround(t)
	g.must(g.client.ChangeTraits(t.Context(), g.provider, []string{"COMPUTE_NODE"}, nil))
	client, m := behind(t)
	for _, read := range []string{"{}", `{"traits": []}`, `{"resource_provider_generation": 1}`, "<html>", `{"traits": {}}`, " "} {
		m.Meddle(readTraits, labtest.Text(read))
		err := client.ChangeTraits(t.Context(), g.provider, []string{"COMPUTE_TRUSTED_CERTS"}, nil)
		if !fault.Is(err, fault.Unavailable) || m.Count(writeTraits) > 0 {
			t.Errorf("after %q: %v and %d writes, want an unavailable fault and none", read, err, m.Count(writeTraits))
		}
	}
	if !slices.Equal(g.traits(), []string{"COMPUTE_NODE"}) {
		t.Errorf("the provider has %v", g.traits())
	}
}
