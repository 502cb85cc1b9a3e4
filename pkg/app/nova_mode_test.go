// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// brokerOf returns a transport to a broker.
func brokerOf(t *testing.T, url string) *amqp.Transport {
	t.Helper()
	at, err := oslo.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := amqp.Open(at, amqp.Options{NewID: uuid.NewString, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := transport.Close(); err != nil {
			t.Error(err)
		}
	})
	return transport
}

// serveTopic serves Nova's topic under a name until stop is called, or the test ends.
func serveTopic(t *testing.T, transport *amqp.Transport, name string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	server := oslo.NewServer(transport, oslo.ServerOptions{Exchange: topic.Exchange, Topic: topic.Topic, Name: name, NewID: uuid.NewString})
	go func() { ended <- server.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve as %s: %v", name, err)
		}
	})
	t.Cleanup(stop)
	<-server.Ready()
	return stop
}

// besideNova is a configuration on machine ctl-1, with a live replica on ctl-2.
func besideNova(t *testing.T, mode, nova, behind string) config.Config {
	t.Helper()
	c, err := config.Load(nil, nil, map[string]string{
		"OS_DEFAULT__HOST":                    "ctl-1",
		"OS_DATABASE__CONNECTION":             "sqlite:///" + filepath.Join(t.TempDir(), "almanac.db"),
		"OS_NOVA__TRANSPORT_URL":              nova,
		"OS_SCHEDULER__MODE":                  mode,
		"OS_SCHEDULER__FORWARD_TRANSPORT_URL": behind,
	})
	if err != nil {
		t.Fatal(err)
	}
	db, err := OpenStore(t.Context(), c, "ctl-2.example.org.0a1b2c3d", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Present(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNovaModeSaysWhoAnswersAndWhatToDo(t *testing.T) {
	own, other, stock := topicName("ctl-1"), topicName("ctl-2.example.org"), "controller"
	for name, c := range map[string]struct {
		mode   string
		nova   []string // the consumers of Nova's topic
		behind []string // those of the nova-scheduler behind; nil means that none is configured
		want   []string // a part of each finding, after whether all is well
	}{
		"nobody but nova-scheduler":   {config.ModeOff, []string{stock}, nil, []string{"well nova-scheduler answers Nova (1 consumer)"}},
		"interposed":                  {config.ModeInterpose, []string{own}, []string{stock, "two"}, []string{"well Almanac answers Nova (1 consumer)", "well nova-scheduler decides", "(2 consumers)", "well Almanac preempts no instances"}},
		"two replicas":                {config.ModeInterpose, []string{own, other}, []string{stock}, []string{"well Almanac answers Nova (2 consumers)", "well nova-scheduler decides"}},
		"two processes of a machine":  {config.ModeInterpose, []string{own, own}, []string{stock}, []string{"well Almanac answers Nova (2 consumers)", "well nova-scheduler decides"}},
		"in turn":                     {config.ModeInterpose, []string{own, other, stock}, []string{stock}, []string{"wrong Almanac and nova-scheduler answer in turn", "2 and 1 consumers: stop nova-scheduler there", "well"}},
		"a stranger in turn":          {config.ModeReplace, []string{own, topicName("ctl-9")}, nil, []string{"wrong Almanac and nova-scheduler answer in turn", "1 and 1 consumers", "well"}},
		"in turn, though off":         {config.ModeOff, []string{own, stock}, nil, []string{"wrong Almanac and nova-scheduler answer in turn", "restart almanacd"}},
		"only Almanac, though off":    {config.ModeOff, []string{own}, nil, []string{"wrong Almanac answers Nova, and mode is off: start nova-scheduler"}},
		"not started yet":             {config.ModeInterpose, []string{stock}, []string{stock}, []string{"wrong nova-scheduler answers Nova (1 consumer), and Almanac does not", "well"}},
		"nobody behind":               {config.ModeInterpose, []string{own}, []string{}, []string{"well", "wrong No process decides, so every request fails"}},
		"replaced":                    {config.ModeReplace, []string{own}, []string{stock}, []string{"well Almanac answers Nova", "well nova-scheduler decides the requests that Almanac cannot judge"}},
		"replaced, and nobody behind": {config.ModeReplace, []string{own}, []string{}, []string{"well", "wrong No process decides the requests that Almanac cannot judge"}},
		"replaced, and none behind":   {config.ModeReplace, []string{own}, nil, []string{"well", "well Requests that Almanac cannot judge find no host"}},
		"a queue that nobody has":     {config.ModeOff, nil, nil, []string{"wrong No process has served Nova's topic", "[nova] transport_url"}},
	} {
		t.Run(name, func(t *testing.T) {
			nova, behind := labtest.RabbitMQ(t), ""
			for _, server := range c.nova {
				serveTopic(t, brokerOf(t, nova), server)
			}
			if c.behind != nil {
				behind = labtest.RabbitMQ(t)
				for _, server := range c.behind {
					serveTopic(t, brokerOf(t, behind), server)
				}
			}
			m, err := LookAtNova(t.Context(), besideNova(t, c.mode, nova, behind))
			if err != nil {
				t.Fatal(err)
			}
			checkFindings(t, m, c.want)
		})
	}
}

// checkFindings checks that the findings contain each of want, in this order.
func checkFindings(t *testing.T, m NovaMode, want []string) {
	t.Helper()
	text, well := "", true
	for _, f := range m.Findings {
		verdict := "well"
		if !f.Well {
			verdict, well = "wrong", false
		}
		text += fmt.Sprintf("%s %s\n", verdict, f.Text)
	}
	rest := text
	for _, part := range want {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("%q is not, in this order, in\n%s", part, text)
		}
		rest = after
	}
	if m.Well() != well {
		t.Errorf("Well is %v of\n%s", m.Well(), text)
	}
}

func TestNovaModeCountsTheRequestsThatNobodyTakes(t *testing.T) {
	for mode, starting := range map[string]string{config.ModeOff: "start nova-scheduler.", config.ModeInterpose: "start almanacd."} {
		nova, behind := labtest.RabbitMQ(t), labtest.RabbitMQ(t)
		transport := brokerOf(t, nova)
		serveTopic(t, transport, "controller")()
		for range 3 {
			if err := transport.Publish(t.Context(), oslo.Message{Key: topic.Topic, Body: []byte("{}"), Mandatory: true}); err != nil {
				t.Fatal(err)
			}
		}
		m, err := LookAtNova(t.Context(), besideNova(t, mode, nova, behind))
		if err != nil {
			t.Fatal(err)
		}
		checkFindings(t, m, []string{"wrong No process answers Nova", starting, "3 requests"})
		if m.Nova.Waiting != 3 {
			t.Errorf("%+v", m.Nova)
		}
	}
}

func TestNovaModeTellsWhatKeepsItFromLooking(t *testing.T) {
	nova := labtest.RabbitMQ(t)
	for name, c := range map[string]struct{ nova, behind, want string }{
		"no broker":       {"", "", "[nova] transport_url: is required"},
		"the same broker": {nova, nova, "go in a circle"},
		"no such host":    {nova, nova + "-not-there", "has no virtual host"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LookAtNova(t.Context(), besideNova(t, config.ModeInterpose, c.nova, c.behind))
			if err == nil || fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "almanac:almanac@") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestTheDoctorReportsThatNovasNotificationsAreNotReceived(t *testing.T) {
	url := labtest.RabbitMQ(t)
	serveTopic(t, brokerOf(t, url), "controller") // its exchange is not durable
	c := besideNova(t, config.ModeOff, url, "")
	c.Nova.Notifications, c.Rabbit.Queues.Durable = true, true
	there := &cloud{}
	f, err := openEvents(process{config: c, log: slog.New(slog.DiscardHandler), replica: "m.1"}, there, &hostSource{changed: newSignal(1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if found := withoutEffect(c, there); len(found) > 0 {
		t.Errorf("before the first attempt: %v", found)
	}
	for _, s := range f.services {
		if s.name == "Nova's notifications" {
			if err := s.run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	found := withoutEffect(c, there)["[nova] notifications"]
	if !strings.Contains(found.Reason, "set amqp_durable_queues, rabbit_quorum_queue and similar options as the other services do") {
		t.Errorf("the doctor finds %+v", found)
	}
}
