// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/servicelog"
)

// lines is a writer that sends each write to the channel.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

const settings = "[api]\nport = 0\n[inventory]\nhosts_file = hosts.yaml\n[database]\nconnection = sqlite://\n"

// opened is an almanacd that does not run, in a folder of its own, which is the working directory.
type opened struct {
	*service
	app *app.App
	log *servicelog.Log
	cfg config.Config
}

// open opens an almanacd with these lines in its configuration.
func open(t *testing.T, text string, stderr io.Writer) opened {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.Mkdir("log", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, "hosts.yaml", "hosts:\n  - {name: a, vcpus: 1, memory_mb: 1, disk_gb: 1}\n")
	write(t, "almanac.conf", text)
	o := opened{service: &service{files: []string{"almanac.conf"}}}
	var err error
	if o.cfg, err = o.load(); err != nil {
		t.Fatal(err)
	}
	if o.log, err = servicelog.Open(o.cfg.Default, "almanacd", stderr, serving.LogHandler); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.log.Close() })
	if o.app, err = app.Open(t.Context(), o.cfg, app.Pace{}, "test", o.log.Logger); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.app.Close() })
	return o
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAReloadLogsWhatHasChangedAndWhatNeedsARestart(t *testing.T) {
	written := make(lines, 100)
	o := open(t, settings, written)
	ctx, stop := context.WithCancel(t.Context())
	hangup, ended := make(chan os.Signal), make(chan struct{})
	go func() {
		defer close(ended)
		o.reloads(ctx, hangup, o.app, o.log, o.cfg)
	}()
	defer func() { stop(); <-ended }()

	write(t, "almanac.conf", "[DEFAULT]\ndebug = true\n"+settings+"[limits]\nmax_duration = 1h\nmax_hosts_per_project = 3\n[lifecycle]\npoll_interval = 7\n")
	hangup <- syscall.SIGHUP
	const want = `changed="[DEFAULT] debug, [limits] max_duration, [limits] max_hosts_per_project" needs_a_restart="[lifecycle] poll_interval"`
	for patience := time.After(2 * time.Minute); ; {
		select {
		case line := <-written:
			if !strings.Contains(line, "configuration read again") {
				continue
			}
			if !strings.Contains(line, want) {
				t.Errorf("the log has %s, want %s", line, want)
			}
			if !o.log.Enabled(ctx, slog.LevelDebug) {
				t.Error("debug was not applied")
			}
			return
		case <-patience:
			t.Fatal("the log does not mention the reload")
		}
	}
}

func TestAReloadThatFailsAppliesNothing(t *testing.T) {
	const changed = "[DEFAULT]\nlog_dir = log\ndebug = true\n" + settings + "[limits]\nmax_hosts_per_project = 3\n"
	for name, tc := range map[string]struct {
		file, text string
		// moved is what is moved away before the reload, and logged the file that then has the error.
		moved, logged string
	}{
		"the configuration is wrong":      {"almanac.conf", changed + "max_duration = soon\n", "log/almanacd.log", "log/almanacd.log"},
		"the policy is wrong":             {"policy.yaml", "no_such_rule: role:admin\n", "log/almanacd.log", "log/almanacd.log"},
		"the log file cannot be reopened": {"almanac.conf", changed, "log", "log.1/almanacd.log"},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, "[DEFAULT]\nlog_dir = log\n"+settings, nil)
			write(t, "almanac.conf", changed)
			write(t, tc.file, tc.text)
			if err := os.Rename(tc.moved, tc.moved+".1"); err != nil {
				t.Fatal(err)
			}
			after := o.reload(o.app, o.log, o.cfg)
			if o.log.Enabled(t.Context(), slog.LevelDebug) || after.Default.Debug || after.Limits != o.cfg.Limits {
				t.Errorf("debug messages are %v, the limits %+v, want none of the changes", o.log.Enabled(t.Context(), slog.LevelDebug), after.Limits)
			}
			if got, err := os.ReadFile(tc.logged); err != nil || !strings.Contains(string(got), "could not apply the configuration") {
				t.Errorf("%s has %q, error %v, want the reason", tc.logged, got, err)
			}
		})
	}
}
