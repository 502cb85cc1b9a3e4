package store_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// inTurn returns one connection that names the hosts of several, after one that nobody listens on.
func inTurn(t *testing.T, connections ...string) string {
	t.Helper()
	hosts := []string{"127.0.0.1:1"}
	var joined url.URL
	for _, connection := range connections {
		u, err := url.Parse(connection)
		if err != nil {
			t.Fatal(err)
		}
		hosts, joined = append(hosts, u.Host), *u
	}
	joined.Host = strings.Join(hosts, ",")
	return joined.String()
}

// The servers share no data, so that what is found shows which of them was asked.
func TestTheStoreUsesTheFirstHostThatAnswersUntilItFails(t *testing.T) {
	first, second := labtest.StartMariaDB(t), labtest.StartMariaDB(t)
	atFirst := open(t, store.Options{Connection: first.URL("almanac")})
	atSecond := open(t, store.Options{Connection: second.URL("almanac")})
	s := open(t, store.Options{Connection: inTurn(t, first.URL("almanac"), second.URL("almanac"))})
	commit := func(id string, on *store.Store) {
		t.Helper()
		if err := s.Commit(t.Context(), booked(id, id, 0)); err != nil {
			t.Fatalf("commit of %s: %v", id, err)
		}
		if _, err := on.Get(t.Context(), id); err != nil {
			t.Errorf("%s is not where it should be: %v", id, err)
		}
		if _, err := s.Get(t.Context(), id); err != nil {
			t.Errorf("the readers are elsewhere: %v", err)
		}
	}
	commit("to the first", atFirst)
	first.Kill()
	commit("to the second", atSecond)
	first.Start()
	commit("still to the second", atSecond)
	second.Kill()
	commit("back to the first", atFirst)
}

func TestWithoutAnyHostTheAnswerOfAServerIsTold(t *testing.T) {
	u, err := url.Parse(labtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("nobody", "s3cret")
	_, err = store.Open(t.Context(), store.Options{Connection: inTurn(t, u.String()), NewToken: func() string { return "" }})
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "refuses Almanac's user or password") ||
		!strings.Contains(err.Error(), "127.0.0.1:1: ") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}
