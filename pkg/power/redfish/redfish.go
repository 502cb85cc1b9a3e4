// SPDX-License-Identifier: Apache-2.0

// Package redfish switches machines whose BMC speaks Redfish (DMTF DSP0266).
package redfish

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// largestAnswer is how many bytes of an answer of a BMC are read.
const largestAnswer = 4 << 20

// Options are the address and the settings of a BMC.
type Options struct {
	URL          string // https://bmc.example.org
	User         string
	PasswordFile string // has the password in its first line
	// Session logs in once and keeps the session, instead of sending the password with every
	// request. Close ends it.
	Session  bool
	CAFile   string // authorities that may sign the BMC's certificate; empty: the system's
	Insecure bool   // accept any certificate
	// System is the path of the ComputerSystem; empty if the BMC has only one.
	System  string
	Timeout time.Duration // of one request; 0 is 30 s
	Poll    power.PollInterval
}

// Machine is a machine behind a BMC. It implements power.Machine.
type Machine struct {
	options Options
	http    *http.Client

	mu      sync.Mutex
	session *gofish.Session
}

var _ power.Machine = (*Machine)(nil)

// New returns a machine. It fails with an Invalid fault if options cannot work.
func New(o Options) (*Machine, error) {
	at, err := url.Parse(o.URL)
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || at.User != nil || strings.Trim(at.Path, "/") != "" {
		return nil, fault.Field("url", "is the BMC's address such as https://10.0.0.7, without a path or a password")
	}
	if o.User == "" || o.PasswordFile == "" {
		return nil, fault.New(fault.Invalid, "user and password_file are required")
	}
	if o.System != "" && !strings.HasPrefix(o.System, "/") {
		return nil, fault.Field("system", "is a path such as /redfish/v1/Systems/1, not %q", o.System)
	}
	o.URL, o.Timeout = strings.TrimRight(o.URL, "/"), cmp.Or(o.Timeout, 30*time.Second)
	trust := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.Insecure}
	if o.CAFile != "" {
		text, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fault.Field("cafile", "cannot be read: %v", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(text) {
			return nil, fault.Field("cafile", "has no certificate: %s", o.CAFile)
		}
	}
	return &Machine{options: o, http: &http.Client{
		Transport:     bounded{&http.Transport{TLSClientConfig: trust, TLSHandshakeTimeout: 10 * time.Second}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// bounded truncates answers that are too long.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper. The body ends after largestAnswer bytes.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		reply.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(reply.Body, largestAnswer), reply.Body}
	}
	return reply, err
}

// States returns On and Off.
func (m *Machine) States() []energy.State { return []energy.State{energy.On, energy.Off} }

// Read reads the power state and the watts; 0 if they cannot be read.
func (m *Machine) Read(ctx context.Context) (power.Reading, error) { return m.read(ctx, watts) }

// read reads the power state, and calls the function for the watts.
func (m *Machine) read(ctx context.Context, watts func(*schemas.ComputerSystem) float64) (r power.Reading, err error) {
	err = m.connected(ctx, func(c *gofish.APIClient) error {
		system, err := m.system(c)
		if err != nil {
			return err
		}
		r = power.Reading{State: states[system.PowerState], Watts: watts(system)}
		return nil
	})
	return r, err
}

// states maps the stable power states: a machine that is powering on is not on yet.
var states = map[schemas.PowerState]energy.State{schemas.OnPowerState: energy.On, schemas.OffPowerState: energy.Off}

// watts returns the power of the machine's first chassis that reports it, as EnvironmentMetrics or,
// as before Redfish 2020.4, as Power; 0 if none does.
func watts(system *schemas.ComputerSystem) float64 {
	list, _ := system.Chassis() // those that can be read
	for _, chassis := range list {
		if metrics, err := chassis.EnvironmentMetrics(); err == nil && metrics != nil && metrics.PowerWatts.Reading != nil {
			return max(0, *metrics.PowerWatts.Reading)
		}
		old, err := chassis.Power()
		if err != nil || old == nil {
			continue
		}
		for _, control := range old.PowerControl {
			if control.PowerConsumedWatts != nil {
				return max(0, float64(*control.PowerConsumedWatts))
			}
		}
	}
	return 0
}

// Switch sends commands to the BMC, and waits until it reports the power state.
func (m *Machine) Switch(ctx context.Context, to energy.State, how power.PowerOffMode) error {
	return power.Drive(ctx, controls{m}, to, how, m.options.Poll)
}

// controls is a machine without its watts, which Switch does not need.
type controls struct{ *Machine }

// Read implements power.Machine.
func (b controls) Read(ctx context.Context) (power.Reading, error) {
	return b.read(ctx, func(*schemas.ComputerSystem) float64 { return 0 })
}

// resets are the reset types of each command, the best first. PushPowerButton is not among
// them: its effect depends on the state of the machine.
var resets = map[power.Command][]schemas.ResetType{
	power.Start:    {schemas.OnResetType, schemas.ForceOnResetType},
	power.Shutdown: {schemas.GracefulShutdownResetType},
	power.Cut:      {schemas.ForceOffResetType},
}

// Send orders the BMC to reset the system, and follows the task if the BMC creates one. It fails
// with an Invalid fault if the system's AllowableValues do not contain the reset.
func (m *Machine) Send(ctx context.Context, p power.Command) error {
	return m.connected(ctx, func(c *gofish.APIClient) error {
		system, err := m.system(c)
		if err != nil {
			return err
		}
		allowed, err := system.GetSupportedResetTypes()
		if err != nil {
			return err
		}
		for _, reset := range resets[p] {
			if len(allowed) == 0 || slices.Contains(allowed, reset) {
				task, err := system.Reset(reset)
				if err != nil || task == nil {
					return err
				}
				return m.follow(ctx, c, task)
			}
		}
		return fault.New(fault.Invalid, "the BMC %s cannot %s the machine; it knows %v", m.options.URL, p, allowed)
	})
}

// follow waits a while for the end of a task. Only a failure of the task matters, because Switch
// reads the state anyway.
func (m *Machine) follow(ctx context.Context, c *gofish.APIClient, info *schemas.TaskMonitorInfo) error {
	ended := info.Task
	if info.TaskMonitor != "" {
		wait, cancel := context.WithTimeout(ctx, m.options.Timeout/2)
		defer cancel()
		reply, err := schemas.WaitForTaskMonitor(wait, c.WithContext(wait), cmp.Or(m.options.Poll.Read, 2*time.Second), info, nil)
		defer schemas.DeferredCleanupHTTPResponse(reply)
		if wait.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if task, err := schemas.DecodeGenericEntity[schemas.Task](c, reply); err == nil {
			ended = task
		}
	}
	if ended == nil || !slices.Contains(failures, ended.TaskState) {
		return nil
	}
	return fault.New(fault.Unavailable, "the task of the BMC %s ended in state %s%s", m.options.URL, ended.TaskState, said(ended.Messages))
}

var failures = []schemas.TaskState{
	schemas.ExceptionTaskState, schemas.KilledTaskState, schemas.CancelledTaskState, schemas.InterruptedTaskState,
}

// said returns the first message of a BMC as the end of a sentence; "" if there is none.
func said(messages []schemas.Message) string {
	if len(messages) == 0 || messages[0].Message == "" {
		return ""
	}
	return ": " + short(messages[0].Message)
}

// short returns the beginning of a BMC's message.
func short(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), 200)], "")
}

// system returns the machine's ComputerSystem.
func (m *Machine) system(c *gofish.APIClient) (*schemas.ComputerSystem, error) {
	if m.options.System != "" {
		return schemas.GetComputerSystem(c, m.options.System)
	}
	all, err := c.Service.Systems()
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fault.New(fault.Invalid, "the BMC %s has %d systems; set system to the one of the host", m.options.URL, len(all))
	}
	return all[0], nil
}

// connected runs do with a connection to the BMC within the timeout, and repeats it once if a
// session has ended in the meantime.
func (m *Machine) connected(ctx context.Context, do func(c *gofish.APIClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, m.options.Timeout)
	defer cancel()
	err := m.once(ctx, do)
	if m.options.Session && status(err) == http.StatusUnauthorized {
		m.keep(nil)
		err = m.once(ctx, do)
	}
	return m.explain(ctx, err)
}

// once calls do with a client that is logged in to the BMC, with a session if the configuration asks for
// one.
func (m *Machine) once(ctx context.Context, do func(c *gofish.APIClient) error) error {
	secret, err := os.ReadFile(m.options.PasswordFile)
	if err != nil {
		return fault.New(fault.Unavailable, "the password of the BMC %s cannot be read: %v", m.options.URL, err)
	}
	line, _, _ := strings.Cut(string(secret), "\n")
	m.mu.Lock()
	session := m.session
	m.mu.Unlock()
	c, err := gofish.ConnectContext(ctx, gofish.ClientConfig{
		Endpoint: m.options.URL, Username: m.options.User, Password: strings.TrimSuffix(line, "\r"), BasicAuth: !m.options.Session,
		Session: session, HTTPClient: m.http, NoModifyTransport: true, ReuseConnections: true,
	})
	if err != nil {
		return err
	}
	if m.options.Session && session == nil {
		if session, err = c.GetSession(); err != nil {
			return err
		}
		m.keep(session)
	}
	return do(c)
}

func (m *Machine) keep(session *gofish.Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session = session
}

// Close ends the session, if there is one.
func (m *Machine) Close() error {
	m.mu.Lock()
	session := m.session
	m.session = nil
	m.mu.Unlock()
	if session == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), m.options.Timeout)
	defer cancel()
	c, err := gofish.ConnectContext(ctx, gofish.ClientConfig{
		Endpoint: m.options.URL, Session: session, HTTPClient: m.http, NoModifyTransport: true, ReuseConnections: true,
	})
	if err == nil {
		err = c.Service.DeleteSession(session.ID)
	}
	m.http.CloseIdleConnections()
	return m.explain(ctx, err)
}

// status returns the HTTP status of an error from a BMC; 0 if it has none.
func status(err error) int {
	if refusal, ok := errors.AsType[*schemas.Error](err); ok {
		return refusal.HTTPReturnedStatusCode
	}
	if several, ok := errors.AsType[*schemas.CollectionError](err); ok {
		for _, one := range several.Failures {
			return status(one)
		}
	}
	return 0
}

// explain returns an error as a sentence.
func (m *Machine) explain(ctx context.Context, err error) error {
	known, ours := errors.AsType[*fault.Error](err)
	code := status(err)
	switch {
	case err == nil:
		return nil
	case ours:
		return known
	case ctx.Err() != nil:
		return &fault.Error{Kind: fault.Unavailable, Message: fmt.Sprintf("the BMC %s did not answer in time", m.options.URL), Err: ctx.Err()}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fault.New(fault.Unavailable, "the BMC %s refuses the user %s (HTTP status %d); check user and password_file",
			m.options.URL, m.options.User, code)
	case code != 0:
		return fault.New(fault.Unavailable, "the BMC %s answered with HTTP status %d: %s", m.options.URL, code, short(err.Error()))
	}
	return fault.New(fault.Unavailable, "the BMC %s cannot be reached: %s", m.options.URL, short(err.Error()))
}
