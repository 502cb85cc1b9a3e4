package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/app"
)

// lines is a writer that sends each write to the channel.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func TestAReloadLogsWhatHasChangedAndWhatNeedsARestart(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("hosts.yaml", "hosts:\n  - {name: a, vcpus: 1, memory_mb: 1, disk_gb: 1}\n")
	const settings = "[api]\nport = 0\n[inventory]\nhosts_file = hosts.yaml\n[database]\nconnection = sqlite://\n"
	write("almanac.conf", settings)
	s := &service{files: []string{"almanac.conf"}}
	cfg, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	written := make(lines, 100)
	log, err := app.OpenLog(cfg.Default, "almanacd", written)
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.Open(t.Context(), cfg, "test", log.Logger)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ctx, stop := context.WithCancel(t.Context())
	hangup, ended := make(chan os.Signal), make(chan struct{})
	go func() {
		defer close(ended)
		s.reloads(ctx, hangup, a, log, cfg)
	}()
	defer func() { stop(); <-ended }()

	write("almanac.conf", settings+"[limits]\nmax_duration = 1h\nmax_hosts_per_project = 3\n[lifecycle]\npoll_interval = 7\n")
	hangup <- syscall.SIGHUP
	const want = `changed="[limits] max_duration, [limits] max_hosts_per_project" needs_a_restart="[lifecycle] poll_interval"`
	for patience := time.After(2 * time.Minute); ; {
		select {
		case line := <-written:
			if !strings.Contains(line, "configuration read again") {
				continue
			}
			if !strings.Contains(line, want) {
				t.Errorf("the log has %s, want %s", line, want)
			}
			return
		case <-patience:
			t.Fatal("the log does not mention the reload")
		}
	}
}
