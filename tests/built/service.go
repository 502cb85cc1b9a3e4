// SPDX-License-Identifier: Apache-2.0

package built

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/client"
)

// Patience bounds every wait for a condition.
const Patience = 2 * time.Minute

// Eventually waits until holds returns true; what describes the failure.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("after %v: %s", Patience, what)
		case <-tick.C:
		}
	}
}

// Ahead returns how far ahead an instant has to be so that some calls end before it: at least
// least, and more if the machine needs long for one call.
func Ahead(least time.Duration, calls int, call func()) time.Duration {
	begun := time.Now()
	call()
	return least + time.Duration(20*calls)*time.Since(begun)
}

// Service is a running almanacd.
type Service struct {
	Folder  string // its working folder, with the database
	URL     string
	Process *exec.Cmd
	Log     *Log
	ended   chan error
}

// Log collects what almanacd writes.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Troubles returns the last lines that are warnings or errors.
func (l *Log) Troubles() string {
	var lines []string
	for line := range strings.Lines(l.String()) {
		if !strings.Contains(line, " INFO ") && !strings.Contains(line, " DEBUG ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-20):], "")
}

const TenHosts = `hosts:
  - name: host-[01-10]
    vcpus: 16
    memory_mb: 65536
    disk_gb: 500
`

// NewFolder returns a folder with a hosts file.
func NewFolder(t testing.TB, hosts string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "hosts.yaml"), []byte(hosts), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// Command prepares almanacd on the folder, on a free port.
func Command(ctx context.Context, folder string, settings ...string) *exec.Cmd {
	return CommandOf(ctx, filepath.Join(Commands(), "almanacd"), folder, settings...)
}

// CommandOf prepares an almanacd that may be of another version.
func CommandOf(ctx context.Context, program, folder string, settings ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, program)
	c.Dir = folder
	c.Env = append(os.Environ(), "OS_API__PORT=0", "OS_INVENTORY__HOSTS_FILE=hosts.yaml", "OS_DATABASE__CONNECTION=sqlite:///almanac.db")
	c.Env = append(c.Env, settings...)
	return c
}

var serves = regexp.MustCompile(`almanac serves url=(\S+)`)

// StartOn starts almanacd on hosts, in its own folder.
func StartOn(t testing.TB, hosts string, settings ...string) *Service {
	t.Helper()
	return Start(t, NewFolder(t, hosts), settings...)
}

// Start starts almanacd and waits until it serves.
func Start(t testing.TB, folder string, settings ...string) *Service {
	t.Helper()
	return Serve(t, Command(context.WithoutCancel(t.Context()), folder, settings...))
}

// Serve starts a prepared almanacd and waits until it serves.
func Serve(t testing.TB, process *exec.Cmd) *Service {
	t.Helper()
	s := &Service{Folder: process.Dir, Log: &Log{}, Process: process, ended: make(chan error, 1)}
	out, err := s.Process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("the log of %s ends with\n%s", s.URL, s.Log.Troubles())
		}
	})
	url := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(io.TeeReader(out, s.Log))
		for lines.Scan() {
			if m := serves.FindStringSubmatch(lines.Text()); m != nil {
				url <- m[1]
			}
		}
		s.ended <- s.Process.Wait()
		close(s.ended)
	}()
	select {
	case s.URL = <-url:
	case err := <-s.ended:
		t.Fatalf("almanacd did not start: %v\n%s", err, s.Log)
	case <-time.After(5 * Patience): // the first reading of a cloud has a request for each host
		t.Fatalf("almanacd does not serve\n%s", s.Log)
	}
	return s
}

// Kill ends the process as a power failure would.
func (s *Service) Kill() {
	_ = s.Process.Process.Kill() // it may have ended
	<-s.ended
}

// Stop ends the process as a service manager would.
func (s *Service) Stop(t *testing.T) {
	t.Helper()
	if err := s.Process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.ended:
		if err != nil {
			t.Fatalf("almanacd stopped with %v\n%s", err, s.Log)
		}
	case <-time.After(Patience):
		t.Fatal("almanacd does not stop")
	}
}

// Client returns a client without a token.
func (s *Service) Client(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Almanac runs the command line against the service.
func (s *Service) Almanac(t *testing.T, arguments ...string) (stdout, stderr string, exit int) {
	t.Helper()
	return Almanac(t, s.Folder, []string{"ALMANAC_URL=" + s.URL}, arguments...)
}

// Almanac runs the command line in a folder, with more variables than those of the test.
func Almanac(t *testing.T, folder string, environment []string, arguments ...string) (stdout, stderr string, exit int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(Commands(), "almanac"), arguments...)
	c.Dir, c.Env = folder, append(os.Environ(), environment...)
	var out, messages strings.Builder
	c.Stdout, c.Stderr = &out, &messages
	if err := c.Run(); err != nil {
		failed, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			t.Fatal(err)
		}
		exit = failed.ExitCode()
	}
	return out.String(), messages.String(), exit
}

// Almanacd runs a command of the service to its end.
func Almanacd(t *testing.T, folder string, settings []string, arguments ...string) (output string, failed bool) {
	t.Helper()
	c := Command(t.Context(), folder, settings...)
	c.Args = append(c.Args, arguments...)
	out, err := c.CombinedOutput()
	return string(out), err != nil
}

// Get returns the service's answer to a request for the given Host header.
func Get(t *testing.T, url, host string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask.Host = host
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
