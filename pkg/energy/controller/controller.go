package controller

import (
	"context"
	"log/slog"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ReasonPrefix begins the reason for which Almanac disables a service. What is disabled for
// another reason was disabled by somebody else.
const ReasonPrefix = "almanac energy "

// Reports keep what the controller saw last.
type Reports interface {
	SaveEnergyReport(ctx context.Context, lease job.Lease, r energy.Report) error
	EnergyReport(ctx context.Context) (energy.Report, error)
}

// Notices tell the world; their errors are logged.
type Notices interface {
	// Switched tells of a host that is being switched off or on, has been, or could not be.
	Switched(ctx context.Context, n Switched) error
	// Alarm tells that an alarm has begun, or has ended.
	Alarm(ctx context.Context, a energy.Alarm, ended bool) error
}

// Switched is what is told of one host's way between on and off.
type Switched struct {
	Host, Operation string
	To              energy.State
	Stage           Stage
	Reason          string
	Urgent          bool
	Since, At       span.Instant // since when it is on this way, and when this stage was reached
}

// Stage is how far a host's way is.
type Stage string

// The stages.
const (
	Starts Stage = "start"
	Ends   Stage = "end"
	Fails  Stage = "error"
)

// Options are what a Controller is made of. Times are seconds where they are not durations.
type Options struct {
	Records  Records
	Settings Settings
	History  History
	Reports  Reports // nil: nobody looks on
	Agents   Agents
	// Cloud and Vacancy are nil where the hosts have no cloud: then a machine that is on is
	// up, and a host without guests is empty.
	Cloud    Cloud
	Vacancy  Vacancy
	Promises Promises
	Hosts    Hosts
	Notices  Notices // nil: nobody is told
	Leases   job.Leases

	Rules      energy.Rules
	Switching  energy.Switching
	Admission  energy.Admission
	Mode       energy.Mode // of the configuration
	WakeTest   bool        // a host must have been shown to wake up
	MostFailed int         // hosts in a row that may fail to wake; 0 is any number
	BootTime   int64       // of a host of which nothing was measured
	Efficiency func(host string) energy.Efficiency
	// Watts gives the power of hosts whose machines do not tell it, by host; nil: nobody
	// does. What it gave stands beside an error.
	Watts      func(ctx context.Context, hosts []string) (map[string]float64, error)
	Forecaster func() (energy.Forecaster, error)
	Keep       int64 // how long the demand is kept
	// Stopped says why nothing may be switched off, besides what operators have set; nil or
	// empty where it may.
	Stopped func() string
	// Changed is called when the records have changed.
	Changed func()

	StepEvery               time.Duration
	MeasureEvery, PlanEvery int64
	Replica                 string
	Now                     func() span.Instant
	NewID                   func() string
	Log                     *slog.Logger
}

// Controller switches hosts, where it holds the lease.
type Controller struct {
	Options
	wake   chan struct{}
	memory memory // of the lease's epoch; of one step at a time
}

// memory is what a controller knows besides the records; another that takes over begins
// anew, and so counts idle hosts from 0.
type memory struct {
	epoch      int64
	idle       map[string]int
	odd        map[string]int // measurements in which an awake host's machine was off
	readings   map[string]energy.Reading
	forecaster energy.Forecaster
	measured   span.Instant
	planned    span.Instant
	plan       energy.Plan
	guests     []headcount
	alarms     map[alarmKey]energy.Alarm
}

// headcount is how many guests there were.
type headcount struct {
	at     span.Instant
	guests int
}

// alarmKey tells alarms apart.
type alarmKey struct {
	kind        energy.AlarmKind
	host, agent string
}

func keyOf(a *energy.Alarm) alarmKey { return alarmKey{a.Kind, a.Host, a.Agent} }

// leaseName is the right to switch hosts.
const leaseName = "energy"

const (
	// leaseTTL is for how long the lease outlives a controller that has stopped.
	leaseTTL = time.Minute
	// lookTimeout bounds what a step asks of the world before it decides, and answerTimeout
	// one question about a host; both are well under leaseTTL.
	lookTimeout   = 20 * time.Second
	answerTimeout = 10 * time.Second
)

// New gives a controller. Job lets it work.
func New(o Options) *Controller {
	return &Controller{Options: o, wake: make(chan struct{}, 1)}
}

// Wake lets the next step begin at once: reservations have changed, or an operator has
// ordered something.
func (c *Controller) Wake() { job.Poke(c.wake) }

// Job is the controller's work.
func (c *Controller) Job() job.Job {
	return job.Job{Name: "energy", Every: c.StepEvery, Wake: c.wake, Step: job.Leased(c.Leases, leaseName, leaseTTL, c.step)}
}

// step looks at the world once, and does what follows.
func (c *Controller) step(ctx context.Context, held *job.Held) error {
	now := c.Now()
	if err := c.resetIfLeaseChanged(ctx, held.Lease, now); err != nil {
		return err
	}
	w, err := c.observe(ctx, now)
	if err != nil || w == nil {
		return err
	}
	if err := held.Ensure(ctx); err != nil { // act may repeat orders to agents
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

// resetIfLeaseChanged clears what is in memory where another process held the lease in between.
func (c *Controller) resetIfLeaseChanged(ctx context.Context, lease job.Lease, now span.Instant) error {
	if m := &c.memory; m.measured > now || m.planned > now { // the clock was set back
		m.measured, m.planned = 0, 0
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
	for _, a := range last.Alarms { // they have been told of
		c.memory.alarms[keyOf(&a)] = a
	}
	c.Log.InfoContext(ctx, "this process controls the power of the hosts", "epoch", lease.Epoch, "measurements", len(before))
	return nil
}
