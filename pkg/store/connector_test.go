// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/mysqlproxy"
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

func TestAHostWithoutAMajorityIsLeft(t *testing.T) {
	connection := labtest.Database(t)
	first, u := through(t, connection)
	second, v := through(t, connection)
	s := open(t, store.Options{Connection: inTurn(t, u, v)})
	for i, refusing := range []*mysqlproxy.Proxy{first, second} {
		refusing.Refuse(true)
		id := fmt.Sprint("r", i)
		if err := s.Commit(t.Context(), booked(id, id, 0)); err != nil {
			t.Fatal(err)
		}
		for range 10 { // every idle connection is to the other one, or becomes so
			if _, err := s.Get(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		before := refusing.Refused()
		if before == 0 {
			t.Errorf("host %d was not asked", i+1)
		}
		if _, err := s.Get(t.Context(), id); err != nil || refusing.Refused() > before {
			t.Errorf("host %d is still asked (%v)", i+1, err)
		}
		refusing.Refuse(false)
	}
}

//make:test-galera
func TestAGaleraNodeThatLeavesItsClusterIsLeft(t *testing.T) {
	cluster := labtest.StartGalera(t, 3)
	s := open(t, store.Options{Connection: inTurn(t, cluster.URL(0, "almanac"), cluster.URL(1, "almanac"))})
	if err := s.Commit(t.Context(), booked("before", "before", 0)); err != nil {
		t.Fatal(err)
	}
	node := openSQL(t, cluster.DSN(0, "almanac"))
	if _, err := node.ExecContext(t.Context(), "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'"); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, node, "wsrep_cluster_status", "non-Primary")
	if err := s.Commit(t.Context(), booked("after", "after", 0)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"before", "after"} {
		if _, err := s.Get(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if again := s.Retries(); again["galera"] == 0 {
		t.Errorf("run again: %v, want for the node without a majority", again)
	}
}

// awaitStatus returns when a variable of the server's status has a value.
func awaitStatus(t *testing.T, db *sql.DB, variable, want string) {
	t.Helper()
	for timeout := time.After(patience); ; {
		var name, got string
		if err := db.QueryRow("SHOW STATUS LIKE '"+variable+"'").Scan(&name, &got); err != nil {
			t.Fatal(err)
		}
		if got == want {
			return
		}
		select {
		case <-timeout:
			t.Fatalf("%s is %s, want %s", variable, got, want)
		case <-time.After(100 * time.Millisecond):
		}
	}
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
