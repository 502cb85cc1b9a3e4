// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// hasty makes almanacd decide within seconds instead of minutes.
var hasty = []string{
	"OS_ENERGY__MODE=auto", "OS_ENERGY__WAKE_TEST_REQUIRED=false",
	"OS_ENERGY__MEASURE_INTERVAL=1s", "OS_ENERGY__PLAN_INTERVAL=2s", "OS_ENERGY__STEP_INTERVAL=1s",
	"OS_ENERGY__IDLE_INTERVALS=3", "OS_ENERGY__HORIZON=0", "OS_ENERGY__DRAIN_TIME=2s",
	"OS_ENERGY__SPARE_HOSTS=0", "OS_ENERGY__SPARE_PERCENT=0", "OS_ENERGY__KEEP_LAST=",
	"OS_ENERGY__MIN_ON_TIME=0", "OS_ENERGY__MIN_OFF_TIME=0", "OS_ENERGY__MAX_OFF_PER_CYCLE=0", "OS_ENERGY__MAX_SWITCHES_PER_DAY=0",
	"OS_ENERGY__SOFT_OFF_TIMEOUT=30s", "OS_ENERGY__BOOT_TIME=15s", "OS_ENERGY__BOOT_MARGIN=10s", "OS_ENERGY__FORECASTER=last_value",
}

// ours is the start of the reason with which Almanac disables a service.
const ours = "almanac energy "

// room is an almanacd beside the lab's OpenStack that may switch some hosts, through an
// almanac-power that switches them with Ironic.
type room struct {
	*beside
	hardware *labtest.Hardware
	hosts    []string
	agent    *exec.Cmd
	files    string // of the agent
}

// newRoom returns a room with machines that boot within the time. Its hosts are the last ones
// that have their own nova-compute, and they are the only ones in the pool.
func newRoom(t *testing.T, hosts int, boot time.Duration, settings ...string) *room {
	t.Helper()
	r := &room{beside: besideOpenStack(t, slices.Concat(hasty, settings)...)}
	r.hardware = labtest.NewHardware(t, boot)
	alone := r.hardware.Hosts()
	if len(alone) < hosts {
		t.Fatalf("%d hosts of the lab have their own nova-compute: start it with COMPUTES_PER_PROCESS=1", len(alone))
	}
	r.hosts = alone[len(alone)-hosts:]
	r.files = t.TempDir()
	r.hardware.FollowIronic()
	r.startAgent()
	r.pool(r.hosts...)
	r.as(labtest.Admin, append([]string{"host", "set", "--property", "energy_managed=true"}, r.hosts...)...)
	return r
}

// startAgent starts almanac-power, also a second time.
func (r *room) startAgent() {
	r.t.Helper()
	var machines strings.Builder
	machines.WriteString("machines:\n")
	for _, host := range r.hosts {
		fmt.Fprintf(&machines, "  - {host: %s, driver: ironic}\n", host)
	}
	list := filepath.Join(r.files, "power.yaml")
	if err := os.WriteFile(list, []byte(machines.String()), 0o600); err != nil {
		r.t.Fatal(err)
	}
	u := labtest.Almanac
	c := exec.CommandContext(context.WithoutCancel(r.t.Context()), filepath.Join(built.Commands(), "almanac-power"))
	c.Env = append(os.Environ(), "OS_AGENT__NAME=rack-1", "OS_AGENT__MACHINES_FILE="+list,
		"OS_AGENT__STATE_FILE="+filepath.Join(r.files, "orders.json"), "OS_AGENT__ANNOUNCE_INTERVAL=1s", "OS_IRONIC__ENABLED=true",
		"OS_KEYSTONE_AUTHTOKEN__AUTH_URL="+r.cloud.AuthURL, "OS_KEYSTONE_AUTHTOKEN__USERNAME="+u.Name,
		"OS_KEYSTONE_AUTHTOKEN__PASSWORD="+u.Password, "OS_KEYSTONE_AUTHTOKEN__PROJECT_NAME="+u.Project)
	for _, setting := range r.settings {
		if strings.HasPrefix(setting, "OS_DEFAULT__TRANSPORT_URL=") {
			c.Env = append(c.Env, setting)
		}
	}
	said := &built.Log{}
	c.Stdout, c.Stderr = said, said
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.agent = c
	r.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = c.Wait()
		if r.t.Failed() {
			r.t.Logf("the log of almanac-power ends with\n%s", said.Troubles())
		}
	})
}

// energy returns a host as the energy controller reports it.
func (r *room) energy(host string) v1.EnergyHost {
	r.t.Helper()
	h, err := r.admin.almanac.EnergyHost(r.t.Context(), host)
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

// phase waits until a host is in the phase.
func (r *room) phase(host, phase string) {
	r.t.Helper()
	var h v1.EnergyHost
	defer func() {
		if r.t.Failed() {
			text, _ := json.MarshalIndent(h, "", "  ") // it was read as JSON
			r.t.Logf("%s is\n%s", host, text)
		}
	}()
	r.await(host+" is "+phase, func() bool {
		h = r.energy(host)
		return h.Phase == phase
	})
}

// seen is what the openstack client shows an operator about hosts.
type seen struct {
	Status, State, Reason map[string]string // of the nova-compute
	Power                 map[string]string // of the node in Ironic
}

func (r *room) openstack() seen {
	r.t.Helper()
	var services []struct {
		Host, Status, State string
		Reason              string `json:"Disabled Reason"`
	}
	var nodes []struct {
		Name  string
		Power string `json:"Power State"`
		Newer string `json:"power_state"` // since ironicclient 6
	}
	r.cloud.OpenstackAll(r.t, labtest.Admin,
		[]string{"compute service list --long --service nova-compute", "baremetal node list"}, &services, &nodes)
	s := seen{map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}}
	for _, one := range services {
		s.Status[one.Host], s.State[one.Host], s.Reason[one.Host] = one.Status, one.State, one.Reason
	}
	for _, n := range nodes {
		s.Power[n.Name] = cmp.Or(n.Power, n.Newer)
	}
	return s
}

// story returns the texts of some kinds in the audit of a host, the first one first.
func (r *room) story(host string, kinds ...string) (texts []string) {
	r.t.Helper()
	for e, err := range r.admin.almanac.EnergyAudit(r.t.Context(), host, 100) {
		if err != nil {
			r.t.Fatal(err)
		}
		if slices.Contains(kinds, e.Kind) {
			texts = append(texts, e.Text)
		}
	}
	slices.Reverse(texts)
	return texts
}

// This is the example of the energy guide: Ironic switches off a host that is not needed, after
// Almanac has disabled its service, and the host is back before its reservation starts.
func TestAnIdleHostSleepsUntilItsReservationBegins(t *testing.T) {
	r := newRoom(t, 1, 2*time.Second)
	host := r.hosts[0]
	r.phase(host, "asleep")
	asleep := r.openstack()
	if asleep.Status[host] != "disabled" || !strings.HasPrefix(asleep.Reason[host], ours) || asleep.Power[host] != "power off" {
		t.Errorf("asleep, openstack shows %s as %s for %q, %s", host, asleep.Status[host], asleep.Reason[host], asleep.Power[host])
	}
	for other, status := range asleep.Status {
		if other != host && (status != "enabled" || asleep.Power[other] != "power on") {
			t.Errorf("openstack shows %s, which was not admitted, as %s, %s", other, status, asleep.Power[other])
		}
	}

	booked := r.book(labtest.Demo, "render", "--quantity", "1", "--start", "+30s", "--duration", "1h")
	if !slices.Equal(r.show(booked.ID).Hosts, []string{host}) {
		t.Fatalf("the reservation is on %v, want %s", r.show(booked.ID).Hosts, host)
	}
	r.phase(host, "awake")
	awake := r.openstack()
	if awake.Status[host] != "enabled" || awake.State[host] != "up" || awake.Power[host] != "power on" {
		t.Errorf("awake, openstack shows %s as %s, %s, %s", host, awake.Status[host], awake.State[host], awake.Power[host])
	}

	active := r.becomes(booked.ID, "active")
	if !active.Start.Equal(booked.Start) {
		t.Errorf("the reservation started at %v, but was announced for %v", active.Start, booked.Start)
	}
	r.orderedInTime(host, booked.Start)
	r.runOn([]string{host}, r.settled(r.boot(r.demo, "render", booked.ID, ""))...)
	r.explained(host)
}

// orderedInTime checks that the host was ordered on before the start, by at least its boot time.
// It does not measure how long this machine really takes.
func (r *room) orderedInTime(host string, start time.Time) {
	r.t.Helper()
	for e, err := range r.admin.almanac.EnergyAudit(r.t.Context(), host, 100) {
		if err != nil {
			r.t.Fatal(err)
		}
		if e.Kind == "order" && strings.HasPrefix(e.Text, "ordered on") {
			if ahead := start.Sub(e.At); ahead < 15*time.Second {
				r.t.Errorf("%s was ordered on %v ahead of the start, want its boot time of 15 s", host, ahead)
			}
			return
		}
	}
	r.t.Errorf("%s was not ordered on", host)
}

// explained checks that the audit explains why a host that slept once did so, and why it no longer does.
func (r *room) explained(host string) {
	r.t.Helper()
	var phases []string
	for _, text := range r.story(host, "phase") {
		phase, reason, _ := strings.Cut(text, ": ")
		if reason == "" {
			r.t.Errorf("the audit of %s has no reason for %s", host, phase)
		}
		phases = append(phases, phase)
	}
	if want := []string{"draining", "stopping", "asleep", "waking", "awake"}; !slices.Equal(phases, want) {
		r.t.Errorf("the audit of %s has the phases %v, want %v", host, phases, want)
	}
	if orders := r.story(host, "order"); len(orders) != 2 || !strings.HasPrefix(orders[0], "ordered off") || !strings.HasPrefix(orders[1], "ordered on") {
		r.t.Errorf("the audit of %s has the orders %q", host, orders)
	}
	if said := r.as(labtest.Admin, "energy", "explain", host); !strings.Contains(said, "awake") {
		r.t.Errorf("almanac energy explain %s prints\n%s", host, said)
	}
}
