// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
)

// NovaMode describes which services answer on Nova's topic scheduler.
type NovaMode struct {
	Mode string `json:"mode"` // as configured: off, interpose or replace
	Nova Topic  `json:"nova"`
	// Behind is the topic to which requests are forwarded; nil if none is configured.
	Behind *Topic `json:"behind"`
	// Replicas has each machine with a live replica of Almanac, and this machine.
	Replicas []Reader  `json:"replicas"`
	Findings []Finding `json:"findings"`
}

// Topic is the state of a queue scheduler.
type Topic struct {
	VirtualHost string `json:"virtual_host"`
	Exists      bool   `json:"exists"`
	Waiting     int    `json:"waiting"` // requests without a consumer yet
	Consumers   int    `json:"consumers"`
	Almanac     int    `json:"almanac"` // consumers that belong to Almanac
}

// Reader is a machine with Almanac, and how many of its processes serve Nova's topic.
type Reader struct {
	Machine   string `json:"machine"`
	Consumers int    `json:"consumers"`
}

// Finding is one conclusion about a NovaMode.
type Finding struct {
	Well bool   `json:"well"` // as configured
	Text string `json:"text"`
}

// Well reports whether reality matches the configuration.
func (m NovaMode) Well() bool {
	return !slices.ContainsFunc(m.Findings, func(f Finding) bool { return !f.Well })
}

// lookTimeout bounds the time for the broker's answers.
const lookTimeout = 10 * time.Second

// LookAtNova asks the message broker which services consume Nova's topic scheduler. Every consumer
// of the topic also has a queue of its own. Almanac's has the name of its machine, which tells the
// two apart.
func LookAtNova(ctx context.Context, c config.Config) (NovaMode, error) {
	m := NovaMode{Mode: c.Scheduler.Mode}
	if err := checkForward(c); err != nil {
		return m, err
	}
	machines, err := liveMachines(ctx, c)
	if err != nil {
		return m, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	p := process{config: c, log: slog.New(slog.DiscardHandler), replica: novaCommand}
	var f feature
	defer f.close()
	_, url := novaTransport(c)
	transport, at, err := f.openTransport(p, "nova mode", url)
	if err != nil {
		return m, fmt.Errorf("[nova] transport_url: %w", err)
	}
	if m.Nova, err = lookAtTopic(ctx, transport, at.VirtualHost); err != nil {
		return m, fmt.Errorf("[nova] transport_url: %w", err)
	}
	for _, machine := range machines {
		own, err := transport.Inspect(ctx, topic.Topic+"."+topicName(machine))
		if err != nil {
			return m, fmt.Errorf("[nova] transport_url: %w", err)
		}
		m.Replicas = append(m.Replicas, Reader{machine, own.Consumers})
		m.Nova.Almanac += own.Consumers
	}
	if url := c.Scheduler.ForwardTransportURL; url != "" {
		transport, at, err := f.openTransport(p, "nova mode", url)
		if err != nil {
			return m, fmt.Errorf("[scheduler] forward_transport_url: %w", err)
		}
		behind, err := lookAtTopic(ctx, transport, at.VirtualHost)
		if err != nil {
			return m, fmt.Errorf("[scheduler] forward_transport_url: %w", err)
		}
		m.Behind = &behind
	}
	m.Findings = append([]Finding{m.judgeNova()}, m.judgeBehind()...)
	if m.Mode == config.ModeInterpose && c.Preemptible.Action != config.NeverPreempt {
		m.Findings = append(m.Findings, well("Almanac preempts no instances although preempt_action is %s: that requires mode = replace.",
			c.Preemptible.Action))
	}
	if floor := c.Packing.Yield.Floor; m.Mode != config.ModeReplace && floor > 0 {
		m.Findings = append(m.Findings, well("The YieldFilter does not run although [packing] min_yield_floor is %g: it requires mode = replace.", floor))
	}
	return m, nil
}

// novaCommand is the name of this command in the database and the broker.
const novaCommand = "almanacd nova"

func lookAtTopic(ctx context.Context, transport *amqp.Transport, virtualHost string) (Topic, error) {
	q, err := transport.Inspect(ctx, topic.Topic)
	return Topic{VirtualHost: virtualHost, Exists: q.Exists, Waiting: q.Messages, Consumers: q.Consumers}, err
}

// liveMachines returns the machines of live replicas, and this one.
func liveMachines(ctx context.Context, c config.Config) (machines []string, err error) {
	if _, url := novaTransport(c); url == "" {
		return nil, fault.Field("[nova] transport_url", "is required to look at Nova's topic, here or in [DEFAULT]")
	}
	own, err := machine(c.Default)
	if err != nil {
		return nil, err
	}
	db, err := OpenStore(ctx, c, novaCommand, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	replicas, err := db.Present(ctx, time.Second)
	if err != nil {
		return nil, err
	}
	machines = []string{own}
	for _, replica := range replicas {
		if dot := strings.LastIndexByte(replica, '.'); dot >= 0 {
			machines = append(machines, replica[:dot])
		}
	}
	slices.Sort(machines)
	return slices.Compact(machines), nil
}

// judgeNova returns a finding about the consumers on Nova's virtual host.
func (m NovaMode) judgeNova() Finding {
	off, almanac := m.Mode == config.ModeOff, m.Nova.Almanac
	others := max(m.Nova.Consumers-almanac, 0) // the queues are not read at the same time
	on := "virtual host " + m.Nova.VirtualHost
	switch {
	case !m.Nova.Exists:
		return wrong("No process has served Nova's topic on %s, which has no queue %s: check that [nova] transport_url is Nova's.", on, topic.Topic)
	case almanac == 0 && others == 0:
		starting := "almanacd"
		if off {
			starting = "nova-scheduler"
		}
		return wrong("No process answers Nova on %s: start %s. The queue has %d requests. Each waits for Nova's [DEFAULT] rpc_response_timeout, "+
			"60 s by default; then its instances go to ERROR.", on, starting, m.Nova.Waiting)
	case almanac > 0 && others > 0 && off:
		return wrong("Almanac and nova-scheduler answer in turn on %s, %d and %d consumers, and mode is off: restart almanacd.", on, almanac, others)
	case almanac > 0 && others > 0:
		return wrong("Almanac and nova-scheduler answer in turn on %s, %d and %d consumers: stop nova-scheduler there, "+
			"because it ignores reservations.", on, almanac, others)
	case almanac > 0 && off:
		return wrong("Almanac answers Nova, and mode is off: start nova-scheduler on %s, then restart almanacd.", on)
	case almanac > 0:
		return well("Almanac answers Nova (%s).", fault.Counted(almanac, "consumer"))
	case off:
		return well("nova-scheduler answers Nova (%s).", fault.Counted(others, "consumer"))
	default:
		return wrong("nova-scheduler answers Nova (%s), and Almanac does not: start almanacd with this configuration, "+
			"then stop nova-scheduler on %s.", fault.Counted(others, "consumer"), on)
	}
}

// judgeBehind returns findings about the nova-scheduler to which requests are forwarded.
func (m NovaMode) judgeBehind() []Finding {
	b, replaces := m.Behind, m.Mode == config.ModeReplace
	if m.Mode == config.ModeOff {
		return nil
	}
	if b == nil {
		return []Finding{well("Requests that Almanac cannot judge find no host: [scheduler] forward_transport_url is not set.")}
	}
	who := fault.Counted(b.Consumers, "consumer")
	switch {
	case b.Consumers > 0 && replaces:
		return []Finding{well("nova-scheduler decides the requests that Almanac cannot judge, on virtual host %s (%s).", b.VirtualHost, who)}
	case b.Consumers > 0:
		return []Finding{well("nova-scheduler decides, on virtual host %s (%s).", b.VirtualHost, who)}
	case replaces:
		return []Finding{wrong("No process decides the requests that Almanac cannot judge: start a nova-scheduler on virtual host %s.", b.VirtualHost)}
	default:
		return []Finding{wrong("No process decides, so every request fails: start a nova-scheduler on virtual host %s.", b.VirtualHost)}
	}
}

func well(format string, args ...any) Finding  { return Finding{true, fmt.Sprintf(format, args...)} }
func wrong(format string, args ...any) Finding { return Finding{false, fmt.Sprintf(format, args...)} }
