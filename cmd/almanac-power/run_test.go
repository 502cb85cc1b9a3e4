// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/servicelog"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// asAgent is set in the environment if this program runs as almanac-power instead of its tests.
const asAgent = "ALMANAC_TEST_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// site is an agent's folder with its configuration and one machine h1. The machine is a file,
// and its programs take as long as the file slow exists.
type site struct {
	t      *testing.T
	folder string
	url    string
	log    bytes.Buffer
}

const tool = `#!/bin/sh
cd "$(dirname "$0")"
[ "$1" = status ] && { cat state; exit; }
echo "$1" >>done
while [ -e slow ]; do sleep 0.05; done
echo "$1" >state.new && mv state.new state
`

func newSite(t *testing.T, url string) *site {
	t.Helper()
	s := &site{t: t, folder: t.TempDir(), url: url}
	program := filepath.Join(s.folder, "tool")
	s.write("tool", tool)
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write("state", "on\n")
	s.write("power.yaml", fmt.Sprintf("machines:\n  - host: h1\n    driver: command\n    on: [%[1]s, \"on\"]\n    off: [%[1]s, \"off\"]\n    status: [%[1]s, status]\n", program))
	s.write("agent.conf", fmt.Sprintf("[DEFAULT]\ntransport_url = %s\n[agent]\nname = one\nmachines_file = power.yaml\nstate_file = state.json\nannounce_interval = 1\n", url))
	return s
}

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(s.folder, name)) // a missing file is empty
	return strings.TrimSpace(string(text))
}

// start starts the agent. The function end sends it a signal and returns how it ended.
func (s *site) start() (end func(signal os.Signal) error) {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	agent := exec.Command(self, "--config-file", filepath.Join(s.folder, "agent.conf"))
	agent.Env = append(os.Environ(), asAgent+"=1")
	agent.Stderr = &s.log
	if err := agent.Start(); err != nil {
		s.t.Fatal(err)
	}
	var once sync.Once
	end = func(signal os.Signal) (err error) {
		once.Do(func() {
			_ = agent.Process.Signal(signal) // it may have ended
			err = agent.Wait()
		})
		return err
	}
	s.t.Cleanup(func() {
		_ = end(os.Kill)
		if s.t.Failed() {
			s.t.Log(s.log.String())
		}
	})
	return end
}

// controller returns the broker and a fleet that receives announcements.
func controller(t *testing.T, url string) (*bus, *power.Fleet) {
	t.Helper()
	cfg, err := config.LoadPowerAgent(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Default.TransportURL = url
	b, err := openBus(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	})
	f := power.NewFleet(power.FleetOptions{Client: b.client, Exchange: exchange, OrderTimeout: 2 * time.Second, Now: time.Now})
	answer(t, b, power.AgentsTopic, f.Endpoint())
	return b, f
}

func answer(t *testing.T, b *bus, topic string, endpoint oslo.Endpoint) {
	t.Helper()
	server := oslo.NewServer(b, oslo.ServerOptions{
		Exchange: exchange, Topic: topic, Name: "test", Queues: oslo.OwnQueues, Endpoints: []oslo.Endpoint{endpoint}, NewID: uuid.NewString,
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	<-server.Ready()
}

// patience bounds every wait for a condition.
const patience = 2 * time.Minute

func within(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timeout while waiting until %s", what)
		}
	}
}

func TestAnAgentThatIsKilledGoesOnWithItsOrder(t *testing.T) {
	url := labtest.RabbitMQ(t)
	_, f := controller(t, url)
	s := newSite(t, url)
	end := s.start()
	within(t, "the agent is heard of", func() bool {
		hosts, _ := f.Access()
		return hosts["h1"].Driver == "command"
	})
	s.write("slow", "")
	o := energy.Order{
		ID: "order-1", Epoch: 1, Number: 1, Host: "h1", State: energy.Off, Patience: 60, Deadline: span.At(time.Now()).Add(600),
	}
	within(t, "it is accepted", func() bool { // a busy agent may answer late
		got, err := f.Order(t.Context(), o)
		return err == nil && got.Progress == energy.OrderAccepted
	})
	within(t, "it is begun", func() bool { return s.read("done") == "off" })
	_ = end(os.Kill) // returns that the process was killed
	if got, err := f.Order(t.Context(), o); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without the agent: %+v, %v", got, err)
	}
	if err := os.Remove(filepath.Join(s.folder, "slow")); err != nil {
		t.Fatal(err)
	}
	within(t, "the program ends", func() bool { return s.read("state") == "off" })

	end = s.start()
	within(t, "the order is over", func() bool {
		got, err := f.Order(t.Context(), o)
		return err == nil && got.Progress == energy.OrderDone
	})
	if done := s.read("done"); done != "off" {
		t.Errorf("the agent ran the programs %q, want off once", done)
	}
	if r := f.Read(t.Context(), []string{"h1"})["h1"]; r.State != energy.Off {
		t.Errorf("got %+v", r)
	}
	if err := end(syscall.SIGTERM); err != nil {
		t.Errorf("a regular end: %v", err)
	}
}

func TestAnAgentThatCannotServeSaysWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *site)
		says   string
	}{
		"no broker is named": {func(s *site) { s.write("agent.conf", "[agent]\nmachines_file = power.yaml\n") }, "transport_url"},
		"an unknown option":  {func(s *site) { s.write("agent.conf", "[agent]\nmachine_file = x\n") }, `did you mean "machines_file"`},
		"no machines":        {func(s *site) { s.write("power.yaml", "machines: []\n") }, "lists no machines"},
		"a damaged memory":   {func(s *site) { s.write("state.json", "{") }, "safe to remove"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "rabbit://a:b@127.0.0.1:1/")
			tc.change(s)
			if err := s.start()(syscall.Signal(0)); err == nil || !strings.Contains(s.log.String(), tc.says) {
				t.Errorf("got %v, %s", err, s.log.String())
			}
		})
	}
}

// tested is an almanacd that reports the given records of a host, one after the other.
type tested struct {
	mu      sync.Mutex
	records []energy.Record
	by      string
}

func (s *tested) Test(_ context.Context, host, by string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = by
	return nil
}

func (s *tested) HostRecord(context.Context, string) (energy.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.records[0]
	if len(s.records) > 1 {
		s.records = s.records[1:]
	}
	return now, nil
}

func TestAWakeTestIsLookedOnAt(t *testing.T) {
	hold := &energy.Hold{Action: energy.Test}
	woke, slept := &energy.WakeTest{At: 9, Woke: true, Seconds: 95}, &energy.WakeTest{At: 9, Reason: "nova-compute did not come up"}
	for name, tc := range map[string]struct {
		records []energy.Record
		code    int
		says    string
	}{
		"it wakes": {[]energy.Record{
			{}, {Hold: hold}, {Phase: energy.Draining, Hold: hold, Reason: "it is closed"}, {Phase: energy.Asleep, Hold: hold}, {Phase: energy.Waking, Hold: hold}, {LastWakeTest: woke},
		}, 0, "woke within 1m35s"},
		"it does not wake": {[]energy.Record{{}, {Hold: hold}, {Phase: energy.Failed, LastWakeTest: slept}}, exitFailed, "nova-compute did not come up"},
		"it is not tested": {[]energy.Record{{LastWakeTest: woke}, {Hold: hold, LastWakeTest: woke}, {LastWakeTest: woke, Reason: "an instance is on it"}}, exitFailed, "an instance is on it"},
		"it takes long":    {[]energy.Record{{}, {Hold: hold}}, exitTimedOut, "goes on in almanacd"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			limit := patience
			if tc.code == exitTimedOut {
				limit = 200 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			seen := &trial{Trials: &tested{records: tc.records}, host: "h1", out: &out, every: time.Millisecond}
			err := seen.run(ctx, "root@here")
			code := 0
			if err != nil {
				code = codeOf(err)
			}
			if text := out.String() + fmt.Sprint(err); code != tc.code || !strings.Contains(text, tc.says) {
				t.Errorf("exit %d\n%s", code, text)
			}
		})
	}
}

func TestAWakeTestNeedsAnAlmanacd(t *testing.T) {
	url := labtest.RabbitMQ(t)
	file := filepath.Join(t.TempDir(), "agent.conf")
	if err := os.WriteFile(file, []byte("[DEFAULT]\ntransport_url = "+url+"\nhost = here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func() (string, error) {
		var out bytes.Buffer
		command := newCommand(&service{})
		command.SetArgs([]string{"test", "h1", "--config-file", file})
		command.SetOut(&out)
		return out.String(), command.ExecuteContext(t.Context())
	}
	if _, err := run(); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "no almanacd with the role energy") {
		t.Errorf("got %v", err)
	}
	b, _ := controller(t, url)
	served := &tested{records: []energy.Record{{}, {LastWakeTest: &energy.WakeTest{At: 1, Woke: true, Seconds: 60}}}}
	answer(t, b, power.TrialsTopic, power.TrialsEndpoint(served))
	if out, err := run(); err != nil || !strings.HasSuffix(served.by, "@here") {
		t.Errorf("got a request by %q: %v\n%s", served.by, err, out)
	}
}

func TestAReloadThatFailsAppliesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		text          string
		moved, logged string // what is moved away before the reload, and the file that then has the error
	}{
		"the configuration is wrong":      {"[agent]\nread_timeout = soon\n", "log/almanac-power.log", "log/almanac-power.log"},
		"the log file cannot be reopened": {"", "log", "log.1/almanac-power.log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.Mkdir("log", 0o700); err != nil {
				t.Fatal(err)
			}
			log, err := servicelog.Open(config.Default{LogDir: "log"}, "almanac-power", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			if err := os.WriteFile("agent.conf", []byte("[DEFAULT]\nlog_dir = log\ndebug = true\n"+tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(tc.moved, tc.moved+".1"); err != nil {
				t.Fatal(err)
			}
			s := &service{files: []string{"agent.conf"}}
			s.reload(log)
			if log.Enabled(t.Context(), slog.LevelDebug) {
				t.Error("debug was applied")
			}
			if got, err := os.ReadFile(tc.logged); err != nil || !strings.Contains(string(got), "could not apply the configuration") {
				t.Errorf("%s has %q, error %v, want the reason", tc.logged, got, err)
			}
			if err := os.WriteFile("agent.conf", []byte("[DEFAULT]\nlog_dir = log\ndebug = true\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll("log", 0o700); err != nil {
				t.Fatal(err)
			}
			if s.reload(log); !log.Enabled(t.Context(), slog.LevelDebug) {
				t.Error("debug was not applied although nothing is wrong any more")
			}
		})
	}
}
