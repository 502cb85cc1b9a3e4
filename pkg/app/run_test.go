// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/config"
)

// opened returns an App on SQLite with one host, on any port.
func opened(t *testing.T, settings map[string]string) *App {
	t.Helper()
	folder := t.TempDir()
	hosts := filepath.Join(folder, "hosts.yaml")
	if err := os.WriteFile(hosts, []byte("hosts:\n  - {name: a, vcpus: 1, memory_mb: 1, disk_gb: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{
		"OS_API__PORT": "0", "OS_INVENTORY__HOSTS_FILE": hosts, "OS_DATABASE__CONNECTION": "sqlite:///" + filepath.Join(folder, "almanac.db"),
	}
	for name, value := range settings {
		environment[name] = value
	}
	cfg, err := config.Load(nil, nil, environment)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), cfg, Pace{}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// asked returns the answer to a GET.
func asked(url string) string {
	answer, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// told is a face that asks for its own health as soon as it drains.
type told struct {
	face
	url, health string
	at          time.Time
}

func (f *told) Drain() {
	f.face.Drain()
	f.health, f.at = asked(f.url+"/healthcheck"), time.Now()
}

func TestAProcessOfWhichAPartCannotGoOnSendsItsClientsAwayFirst(t *testing.T) {
	a := opened(t, map[string]string{"OS_API__DRAIN_DELAY": "1"})
	drained := &told{face: a.face, url: a.URL()}
	a.face = drained
	refused, fail := errors.New("the broker refuses the queue"), make(chan struct{})
	a.features = append(a.features, feature{services: []service{{"topic test", func(context.Context) error {
		<-fail
		return refused
	}}}})
	ended := make(chan error, 1)
	go func() { ended <- a.Run(t.Context()) }()
	if got := asked(a.URL() + "/healthcheck"); got != "OK\n" {
		t.Errorf("while all is well: %q", got)
	}
	close(fail)
	if err := <-ended; !errors.Is(err, refused) {
		t.Errorf("it ended with %v, want what failed", err)
	}
	if drained.health != "draining\n" || time.Since(drained.at) < time.Second {
		t.Errorf("%v before the end the health check answered %q", time.Since(drained.at), drained.health)
	}
}
