// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ReasonPrefix begins the reason with which Almanac disables a service. A service that is
// disabled for any other reason was not disabled by Almanac.
const ReasonPrefix = "almanac energy "

// Ours reports whether a service that is disabled for the reason was disabled by Almanac.
func Ours(reason string) bool { return strings.HasPrefix(reason, ReasonPrefix) }

// Reports stores the last report of the controller.
type Reports interface {
	SaveEnergyReport(ctx context.Context, lease job.Lease, r energy.Report) error
	EnergyReport(ctx context.Context) (energy.Report, error)
}

// Notices sends notifications; the controller logs their errors.
type Notices interface {
	// Switched notifies that a host is being switched off or on, has been, or could not be.
	Switched(ctx context.Context, n Switched) error
	// Alarm notifies that an alarm has begun or ended.
	Alarm(ctx context.Context, a energy.Alarm, ended bool) error
}

// Switched is the content of the notification that the switching of a host has reached a stage.
type Switched struct {
	Host, Operation string
	To              energy.State
	Stage           Stage
	Reason          string
	Urgent          bool
	Since, At       span.Instant // when this way began, and when it reached this stage
}

// Stage is the progress of the switching of a host.
type Stage string

// The stages.
const (
	Starts Stage = "start"
	Ends   Stage = "end"
	Fails  Stage = "error"
)

// Options are the dependencies and settings of a Controller. Numbers of time are in seconds.
type Options struct {
	Records  Records
	Settings Settings
	History  History
	Reports  Reports // nil: no reports are stored
	Agents   Agents
	// Cloud and Vacancy are nil if the hosts have no cloud. Then a host whose machine is on counts
	// as up, and a host without instances as empty.
	Cloud    ComputeServices
	Vacancy  Vacancy
	Promises Promises
	Hosts    Hosts
	Notices  Notices // nil: no notifications are sent
	Leases   job.Leases

	Rules      energy.Rules
	Switching  energy.Switching
	Admission  energy.Admission
	Mode       energy.Mode // the configured mode
	WakeTest   bool        // only hosts that have passed a wake test are switched off
	MostFailed int         // failed wakes of hosts in a row that stop switching off; 0 means no limit
	BootTime   int64       // boot time of a host without a measured one
	Efficiency func(host string) energy.Efficiency
	// Watts returns the power, in watts by host, of hosts whose machines do not report it. It may
	// return results together with an error. A nil function means that nothing else measures power.
	Watts      func(ctx context.Context, hosts []string) (map[string]float64, error)
	Forecaster func() (energy.Forecaster, error)
	Keep       int64 // how long the demand is kept
	// Stopped returns a reason why nothing may be switched off, in addition to the settings of
	// operators; "" if hosts may be. A nil function means that there is none.
	Stopped func() string
	// Changed is called after the records have changed.
	Changed func()
	// Touched returns the hosts about which another port or function may return something else than before its last call,
	// also because of the controller's own calls. Claims of reservations do not count. known is false if something may have
	// changed that is not about single hosts: which hosts there are, or the mode of all hosts or of an aggregate. Touched is
	// called before the ports, in each step. A nil function means that everything may have changed before each step.
	Touched func() (hosts []string, known bool)

	StepEvery               time.Duration
	MeasureEvery, PlanEvery int64
	Replica                 string
	Now                     func() span.Instant
	NewID                   func() string
	Log                     *slog.Logger
}

// Controller switches hosts off and on while it has the lease.
type Controller struct {
	Options
	wake   chan struct{}
	memory memory // valid for the lease's epoch; used by one step at a time
}

// memory is what a controller remembers between steps in addition to the stored records. A
// controller that takes over starts with an empty memory, and so counts idle hosts from 0.
type memory struct {
	epoch      int64
	idle       map[string]int
	odd        map[string]int // measurements in a row in which the machine of an awake host was off
	readings   map[string]energy.Reading
	forecaster energy.Forecaster
	measured   span.Instant
	planned    span.Instant
	plan       energy.Plan
	counts     []instanceCount
	alarms     map[alarmKey]energy.Alarm
	// surveyed is false if the last step has not looked at all hosts that Touched returned. The places and machines of that step are of
	// the same hosts, by name.
	surveyed bool
	hosts    *inventory.Snapshot
	places   []place
	machines []energy.Machine
	needs    needs
	// These are of the last step, whose memory the next one uses.
	watched []energy.Watched
	spells  []energy.Spell
}

// instanceCount is the number of instances at an instant.
type instanceCount struct {
	at        span.Instant
	instances int
}

// alarmKey identifies an alarm.
type alarmKey struct {
	kind        energy.AlarmKind
	host, agent string
}

func keyOf(a *energy.Alarm) alarmKey { return alarmKey{a.Kind, a.Host, a.Agent} }

// leaseName is the name of the lease for switching hosts.
const leaseName = "energy"

const (
	// leaseTTL is for how long the lease remains when its controller has stopped.
	leaseTTL = time.Minute
	// lookTimeout limits the observation at the beginning of a step, answerTimeout one request
	// about a host. Both are much shorter than leaseTTL.
	lookTimeout   = 20 * time.Second
	answerTimeout = 10 * time.Second
)

// New returns a controller. Its Job does the work.
func New(o Options) *Controller {
	return &Controller{Options: o, wake: make(chan struct{}, 1)}
}

// Wake starts the next step at once, for example after a change of reservations or a manual order.
func (c *Controller) Wake() { job.Poke(c.wake) }

// Job returns the controller's periodic work.
func (c *Controller) Job() job.Job {
	return job.Job{Name: "energy", Every: c.StepEvery, Wake: c.wake, Step: job.Leased(c.Leases, leaseName, leaseTTL, c.step)}
}

// step observes once, decides, and acts.
func (c *Controller) step(ctx context.Context, held *job.Held) error {
	now := c.Now()
	if err := c.resetIfLeaseChanged(ctx, held.Lease, now); err != nil {
		return err
	}
	w, err := c.observe(ctx, now)
	if err != nil || w == nil {
		return err
	}
	if err := held.Ensure(ctx); err != nil { // act may send orders to agents again
		return err
	}
	wants, err := c.decide(ctx, held.Lease, w)
	if err != nil {
		return err
	}
	failed := c.act(ctx, held, w, wants)
	if err := c.tell(ctx, held.Lease, w); err != nil {
		return err
	}
	return failed
}

// resetIfLeaseChanged rebuilds the memory from the history if another process has had the lease
// since the last step.
func (c *Controller) resetIfLeaseChanged(ctx context.Context, lease job.Lease, now span.Instant) error {
	if m := &c.memory; m.measured > now || m.planned > now { // the clock was set back
		m.measured, m.planned, m.surveyed, m.needs = 0, 0, false, needs{}
	}
	if c.memory.epoch == lease.Epoch && c.memory.forecaster != nil {
		return nil
	}
	forecaster, err := c.Forecaster()
	if err != nil {
		return err
	}
	before, err := c.History.Demand(ctx, now.Add(-c.Keep))
	if err != nil {
		return err
	}
	for _, d := range before {
		forecaster.Observe(d.At, d.InUse)
	}
	var last energy.Report
	if c.Reports != nil {
		if last, err = c.Reports.EnergyReport(ctx); err != nil {
			return err
		}
	}
	c.memory = memory{epoch: lease.Epoch, forecaster: forecaster, readings: map[string]energy.Reading{}, alarms: map[alarmKey]energy.Alarm{}, odd: map[string]int{}}
	for _, a := range last.Alarms { // these alarms have been announced already
		c.memory.alarms[keyOf(&a)] = a
	}
	c.Log.InfoContext(ctx, "this process now controls the power of the hosts", "epoch", lease.Epoch, "measurements", len(before))
	return nil
}
