// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Reservations start and end, hosts sleep and wake, and things go wrong meanwhile. No
// reservation starts late because of power, no host with an instance is off, and the audit
// explains every host. A day takes eight minutes, or the value of ALMANAC_ENERGY_DAY, such as
// 1h.
//
//make:test-energy
func TestADayOfHostsThatSleep(t *testing.T) {
	labtest.Long(t)
	length := 8 * time.Minute
	if text := os.Getenv("ALMANAC_ENERGY_DAY"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	d := &day{
		room: newRoom(t, 5, 3*time.Second, "OS_ENERGY__BOOT_TIME=20s", "OS_ENERGY__BOOT_MARGIN=30s", "OS_ENERGY__MAX_BOOTING=3"),
		dice: rand.New(rand.NewPCG(1, 2)), guests: map[string]bool{},
	}
	trouble := []func(){d.agentKilled, d.switchedByHand, d.almanacdKilled, d.closedByHand, d.slowBoot}
	for n, end := 0, time.Now().Add(length); time.Now().Before(end); n++ {
		d.book()
		if n%2 == 1 {
			trouble[n/2%len(trouble)]()
		}
		d.watch(time.Duration(10+d.dice.IntN(15)) * time.Second)
	}
	for _, booked := range d.booked {
		d.watch(time.Until(booked.End.Add(5 * time.Second)))
	}
	for _, host := range d.hosts {
		d.phase(host, "asleep")
		d.hasAStory(host)
	}
	d.startedInTime()
	t.Logf("%d reservations, %d refused, %d with an instance; in %d checks hosts slept %d times; trouble: %v",
		len(d.booked), d.refused, len(d.guests), d.looks, d.slept, d.troubles)
	if d.slept == 0 || len(d.guests) == 0 {
		t.Error("no host slept, or no reservation was used")
	}
}

// day is a day of a room.
type day struct {
	*room
	dice                  *rand.Rand
	booked                []v1.Reservation
	guests                map[string]bool // reservations with a requested instance
	refused, looks, slept int
	troubles              []string
}

// book requests one to three hosts for a later start; a refusal for lack of hosts is fine.
func (d *day) book() {
	d.t.Helper()
	start, quantity, length := d.soon(60+d.dice.IntN(30)), 1+d.dice.IntN(3), v1.Duration(30+d.dice.IntN(40))
	made, err := d.demo.almanac.CreateReservation(d.t.Context(), v1.ReservationRequest{
		Name: "day", StartTime: &start, Duration: &length, Quantity: &quantity,
	}, client.CreateOptions{})
	if refusal, ok := errors.AsType[*client.Error](err); ok && refusal.Status == http.StatusConflict {
		d.refused++
		return
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.booked = append(d.booked, made)
}

// watch checks the invariants for a while, and starts instances in active reservations.
func (d *day) watch(length time.Duration) {
	d.t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(length); time.Now().Before(end); <-tick.C {
		d.look()
		d.use()
	}
}

func (d *day) look() {
	d.t.Helper()
	d.looks++
	var off []string
	for host, power := range d.powers() {
		if power == "power off" {
			off = append(off, host)
		}
	}
	d.slept += len(off)
	// An instance that exists now existed when its host was seen off, because no instance reaches
	// a host within its boot time.
	var all struct{ Servers []server }
	d.admin.Must("GET", "compute", "/servers/detail?all_tenants=1", nil, &all)
	for _, s := range all.Servers {
		if slices.Contains(off, s.Host) && s.Task != "deleting" {
			d.t.Errorf("%s is off, but has %+v", s.Host, s)
		}
	}
}

// powers returns the power states of the hosts in Ironic.
func (d *day) powers() map[string]string {
	d.t.Helper()
	var list struct {
		Nodes []struct {
			Name  string
			Power string `json:"power_state"`
		}
	}
	d.admin.Must("GET", "baremetal", "/v1/nodes?fields=name,power_state", nil, &list)
	powers := map[string]string{}
	for _, n := range list.Nodes {
		if slices.Contains(d.hosts, n.Name) {
			powers[n.Name] = n.Power
		}
	}
	return powers
}

// use starts an instance in each active reservation that does not end too soon.
func (d *day) use() {
	d.t.Helper()
	for _, booked := range d.booked {
		if d.guests[booked.ID] || time.Now().Before(booked.Start) || time.Until(booked.End) < 15*time.Second {
			continue
		}
		if d.show(booked.ID).Status == "active" {
			d.guests[booked.ID] = true
			d.boot(d.demo, "day", booked.ID, "")
		}
	}
}

func (d *day) startedInTime() {
	d.t.Helper()
	for _, booked := range d.booked {
		r := d.show(booked.ID)
		begun := lastEvent(r, "start")
		if r.Status != "ended" || begun.DoneAt == nil || begun.DoneAt.Sub(booked.Start) > 15*time.Second {
			d.t.Errorf("the reservation from %v is %s, its start is %+v; degraded: %v %s", booked.Start, r.Status, begun, r.Degraded, r.DegradedReason)
		}
	}
}

// ways lists which phases may follow each phase.
var ways = map[string][]string{
	"awake": {"draining", "asleep", "waking"}, "draining": {"stopping", "awake"}, "stopping": {"asleep", "awake", "draining"},
	"asleep": {"waking"}, "waking": {"awake", "asleep", "failed"}, "failed": {"waking", "awake"},
}

// hasAStory checks that each phase of a host may follow the one before, and has a reason.
func (d *day) hasAStory(host string) {
	d.t.Helper()
	last := "awake"
	for _, text := range d.story(host, "phase") {
		phase, reason, _ := strings.Cut(text, ": ")
		if reason == "" || !slices.Contains(ways[last], phase) {
			d.t.Errorf("the audit of %s has after phase %s: %q", host, last, text)
		}
		last = phase
	}
	if is := d.energy(host).Phase; is != last {
		d.t.Errorf("%s is %s, but the audit ends with %s", host, is, last)
	}
}

// in returns a host in the phase that is not reserved, or "".
func (d *day) in(phase string) string {
	d.t.Helper()
	for _, host := range d.hosts {
		if h := d.energy(host); h.Phase == phase && h.ReservedFrom == nil {
			return host
		}
	}
	return ""
}

func (d *day) agentKilled() {
	d.t.Helper()
	d.troubles = append(d.troubles, "the agent was killed")
	_ = d.agent.Process.Kill() // it may have ended
	d.watch(5 * time.Second)
	d.startAgent()
}

func (d *day) almanacdKilled() {
	d.t.Helper()
	d.troubles = append(d.troubles, "almanacd was killed")
	d.crash()
	d.start()
}

func (d *day) switchedByHand() {
	d.t.Helper()
	if host := d.in("asleep"); host != "" {
		d.troubles = append(d.troubles, host+" was switched on by hand")
		d.cloud.Openstack(d.t, labtest.Admin, "baremetal", "node", "power", "on", host)
	}
}

// closedByHand checks that a host that an operator disabled stays disabled, with the operator's reason.
func (d *day) closedByHand() {
	d.t.Helper()
	host := d.in("awake")
	if host == "" {
		return
	}
	d.troubles = append(d.troubles, host+" was closed by hand")
	d.cloud.Openstack(d.t, labtest.Admin, "compute", "service", "set", "--disable", "--disable-reason", "a new disk", host, "nova-compute")
	d.watch(8 * time.Second)
	if now := d.openstack(); now.Status[host] != "disabled" || now.Reason[host] != "a new disk" || now.Power[host] != "power on" {
		d.t.Errorf("an operator disabled %s, but it is %s for %q, %s", host, now.Status[host], now.Reason[host], now.Power[host])
	}
	d.cloud.Openstack(d.t, labtest.Admin, "compute", "service", "set", "--enable", host, "nova-compute")
}

func (d *day) slowBoot() {
	d.t.Helper()
	host := d.hosts[d.dice.IntN(len(d.hosts))]
	d.troubles = append(d.troubles, host+" boots slowly")
	d.hardware.Boots(host, 8*time.Second)
}

// Another host replaces it in time, and there are alarms.
//
//make:test-energy
func TestAReservationLeavesAHostThatDoesNotWake(t *testing.T) {
	labtest.Long(t)
	r := newRoom(t, 2, 2*time.Second,
		"OS_ENERGY__BOOT_TIMEOUT=25s", "OS_ENERGY__BOOT_RETRIES=1", "OS_ENERGY__BOOT_BACKOFF=1s", "OS_ENERGY__BOOT_MARGIN=100s")
	for _, host := range r.hosts {
		r.phase(host, "asleep")
	}
	// Where hosts boot slowly, the earliest start for which one can be woken is later than the first.
	booked := r.book(labtest.Demo, "render", "--quantity", "1", "--start", "+125s", "--end", "+2h", "--duration", "1h")
	hangs := r.show(booked.ID).Hosts[0]
	r.hardware.Boots(hangs, labtest.NeverBoots)
	r.within(cloudPatience, time.Second, hangs+" is broken, and there is an alarm", func() bool {
		status, err := r.admin.almanac.Energy(t.Context())
		return err == nil && r.energy(hangs).Phase == "failed" &&
			slices.ContainsFunc(status.Alarms, func(a v1.EnergyAlarm) bool { return a.Host == hangs && a.Kind == "quarantined" })
	})
	r.within(cloudPatience, time.Second, "the reservation is active", func() bool { return r.show(booked.ID).Status == "active" })
	active := r.show(booked.ID)
	if begun := lastEvent(active, "start"); slices.Contains(active.Hosts, hangs) || begun.DoneAt.Sub(booked.Start) > 15*time.Second {
		t.Errorf("the reservation is on %v, its start is %+v", active.Hosts, begun)
	}
}
