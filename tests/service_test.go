// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

// commands is the folder of the built commands.
var commands string

// TestMain builds the commands once, as `make build` does.
func TestMain(m *testing.M) {
	if form := os.Getenv(loadOf); form != "" {
		sendLoads(form)
	}
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "almanac-tests-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(folder)
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", folder+"/", "./cmd/...") // as make build
		build.Dir = ".."
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the commands: %v\n%s", err, out)
			return 1
		}
		commands = folder
		return m.Run()
	}())
}

// patience bounds every wait for a condition.
const patience = 2 * time.Minute

// eventually waits until holds returns true; what describes the failure.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("after %v: %s", patience, what)
		case <-tick.C:
		}
	}
}

// ahead returns how far ahead an instant has to be so that some calls end before it: at least
// least, and more if the machine needs long for one call.
func ahead(least time.Duration, calls int, call func()) time.Duration {
	begun := time.Now()
	call()
	return least + time.Duration(20*calls)*time.Since(begun)
}

// service is a running almanacd.
type service struct {
	folder  string // its working folder, with the database
	url     string
	process *exec.Cmd
	log     *log
	ended   chan error
}

// log collects what almanacd writes.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// troubles returns the last lines that are warnings or errors.
func (l *log) troubles() string {
	var lines []string
	for line := range strings.Lines(l.String()) {
		if !strings.Contains(line, " INFO ") && !strings.Contains(line, " DEBUG ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-20):], "")
}

const tenHosts = `hosts:
  - name: host-[01-10]
    vcpus: 16
    memory_mb: 65536
    disk_gb: 500
`

// newFolder returns a folder with a hosts file.
func newFolder(t testing.TB, hosts string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "hosts.yaml"), []byte(hosts), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// command prepares almanacd on the folder, on a free port.
func command(ctx context.Context, folder string, settings ...string) *exec.Cmd {
	return commandOf(ctx, filepath.Join(commands, "almanacd"), folder, settings...)
}

// commandOf prepares an almanacd that may be of another version.
func commandOf(ctx context.Context, program, folder string, settings ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, program)
	c.Dir = folder
	c.Env = append(os.Environ(), "OS_API__PORT=0", "OS_INVENTORY__HOSTS_FILE=hosts.yaml", "OS_DATABASE__CONNECTION=sqlite:///almanac.db")
	c.Env = append(c.Env, settings...)
	return c
}

var serves = regexp.MustCompile(`almanac serves url=(\S+)`)

// startOn starts almanacd on hosts, in its own folder.
func startOn(t testing.TB, hosts string, settings ...string) *service {
	t.Helper()
	return start(t, newFolder(t, hosts), settings...)
}

// start starts almanacd and waits until it serves.
func start(t testing.TB, folder string, settings ...string) *service {
	t.Helper()
	return serve(t, command(context.WithoutCancel(t.Context()), folder, settings...))
}

// serve starts a prepared almanacd and waits until it serves.
func serve(t testing.TB, process *exec.Cmd) *service {
	t.Helper()
	s := &service{folder: process.Dir, log: &log{}, process: process, ended: make(chan error, 1)}
	out, err := s.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the log of %s ends with\n%s", s.url, s.log.troubles())
		}
	})
	url := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(io.TeeReader(out, s.log))
		for lines.Scan() {
			if m := serves.FindStringSubmatch(lines.Text()); m != nil {
				url <- m[1]
			}
		}
		s.ended <- s.process.Wait()
		close(s.ended)
	}()
	select {
	case s.url = <-url:
	case err := <-s.ended:
		t.Fatalf("almanacd did not start: %v\n%s", err, s.log)
	case <-time.After(5 * patience): // the first reading of a cloud has a request for each host
		t.Fatalf("almanacd does not serve\n%s", s.log)
	}
	return s
}

// kill ends the process as a power failure would.
func (s *service) kill() {
	_ = s.process.Process.Kill() // it may have ended
	<-s.ended
}

// stop ends the process as a service manager would.
func (s *service) stop(t *testing.T) {
	t.Helper()
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.ended:
		if err != nil {
			t.Fatalf("almanacd stopped with %v\n%s", err, s.log)
		}
	case <-time.After(patience):
		t.Fatal("almanacd does not stop")
	}
}

func (s *service) client(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: s.url})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// almanac runs the command line against the service.
func (s *service) almanac(t *testing.T, arguments ...string) (stdout, stderr string, exit int) {
	t.Helper()
	return almanac(t, s.folder, []string{"ALMANAC_URL=" + s.url}, arguments...)
}

func almanac(t *testing.T, folder string, environment []string, arguments ...string) (stdout, stderr string, exit int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(commands, "almanac"), arguments...)
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
