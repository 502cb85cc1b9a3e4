// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// openClock sets the clock of the process by the database's, and opens the job that keeps it so.
func openClock(ctx context.Context, p process, db databaseClock) (f feature, err error) {
	set := func(ctx context.Context) error { return p.clock.set(ctx, db, p.log) }
	f.jobs = append(f.jobs, job.Job{Name: "clock", Every: clockEvery, Step: set})
	f.probe("clock in step", func() error {
		if ahead := p.clock.ahead(); ahead.Abs() > worthSaying {
			return fmt.Errorf("the database's clock is %v ahead of this machine's", ahead.Round(time.Millisecond))
		}
		return nil
	})
	f.probe("clock trusted", func() error {
		if doubt := p.clock.doubt(); doubt != "" {
			return errors.New(doubt)
		}
		return nil
	})
	f.metrics.gauge("almanac_database_clock_offset_seconds", "How far the database's clock is ahead of this machine's.", nil,
		func() float64 { return p.clock.ahead().Seconds() })
	f.metrics.gauge("almanac_database_clock_doubt", "1 if the database's clock is not trusted, so that nothing begins that depends on it.", nil,
		func() float64 { return oneIf(p.clock.doubt() != "") })
	return f, set(ctx)
}

// databaseClock reads the time of a database.
type databaseClock interface {
	Now(ctx context.Context) (time.Time, error)
}

const (
	clockEvery = 10 * time.Second
	// worthSaying is the difference between the clocks above which it is logged.
	worthSaying = time.Second
	// clockStep is the largest difference between an answer and the expected time of the
	// database's clock, as this machine's stopwatch measures it, that is accepted at once.
	clockStep = 5 * time.Second
	// clockAgrees is the largest difference between suspect answers that agree.
	clockAgrees = time.Second
	// clockLooks is how many answers in a row, two minutes' worth, must agree before the clock
	// accepts a jump. Each return to the previous time doubles it, up to clockDoublings times: one
	// address may lead to several nodes with different clocks.
	clockLooks     = 12
	clockDoublings = 5
	// clockCalm is the time without a suspect answer after which clockLooks applies again.
	clockCalm = time.Hour
)

// clock is the database's clock as this process knows it, so that all replicas agree on what is
// due. It runs on this machine's stopwatch, which nobody adjusts, and follows the database's
// answers.
//
// It accepts an answer far from the expected time only after several agree, because an end that is
// carried out too early deletes somebody's servers. Until then it continues as before, and doubt
// returns the reason.
//
// All of this is in real time; now returns the time at the pace of the process.
type clock struct {
	pace  Pace
	shown atomic.Pointer[shown] // nil before the first answer

	// The following fields belong to set.
	believed  *reading // nil before the first answer
	confirmed bool     // by an answer of the database
	suspect   *reading // the reading by the last answers that were not accepted; nil if none
	looks     int      // answers that agree on the suspect
	returns   int      // to the previous time, each from a suspect
	doubted   time.Time
	said      time.Duration
}

// shown is the state of a clock that its readers see.
type shown struct {
	reading
	doubt string
}

// reading is the database's time at a moment of this machine's stopwatch.
type reading struct{ at, there time.Time }

// time returns the database's time at another moment.
func (r reading) time(at time.Time) time.Time { return r.there.Add(at.Sub(r.at)) }

func (c *clock) now() span.Instant { return span.At(c.pace.at(c.time(time.Now()))) }

// until returns in how much real time the instant begins.
func (c *clock) until(at span.Instant) time.Duration {
	return at.Time().Sub(c.pace.at(c.time(time.Now()))) / time.Duration(c.pace.Speed())
}

func (c *clock) time(at time.Time) time.Time {
	if s := c.shown.Load(); s != nil {
		return s.time(at)
	}
	return at
}

// ahead returns how far the database's clock is ahead of this machine's.
func (c *clock) ahead() time.Duration {
	at := time.Now()
	return c.time(at).Sub(at.Round(0))
}

// doubt returns, as a sentence, why the time is uncertain, so that nothing irreversible may begin;
// empty if it is certain.
func (c *clock) doubt() string {
	if s := c.shown.Load(); s != nil {
		return s.doubt
	}
	return ""
}

// answer is the database's time at some moment between two moments of this machine.
type answer struct{ asked, answered, there time.Time }

// against returns by how much the answer contradicts a reading. The longer the answer took, the
// less it contradicts.
func (a answer) against(r reading) time.Duration {
	least, most := a.there.Sub(r.time(a.answered)), a.there.Sub(r.time(a.asked))
	return min(max(0, least), most)
}

// corrects returns the reading, corrected just enough to agree with the answer.
func (a answer) corrects(r reading) *reading {
	return &reading{at: a.answered, there: r.time(a.answered).Add(a.against(r))}
}

// set reads the database's time.
func (c *clock) set(ctx context.Context, db databaseClock, log *slog.Logger) error {
	a := answer{asked: time.Now()}
	var err error
	if a.there, err = db.Now(ctx); err != nil {
		return err
	}
	a.answered = time.Now()
	if c.believed == nil {
		c.believed = &reading{at: a.asked, there: a.asked.Round(0)}
	}
	c.judge(a, log)
	c.show()
	if ahead := c.ahead(); (ahead - c.said).Abs() > worthSaying {
		c.said = ahead
		log.Warn("this machine's clock differs from the database's; following the database's", "database_ahead", ahead.Round(time.Millisecond))
	}
	return nil
}

// judge accepts an answer, or compares it with the suspect.
func (c *clock) judge(a answer, log *slog.Logger) {
	far := a.against(*c.believed)
	switch {
	case far.Abs() <= clockStep:
		if c.suspect != nil {
			log.Warn("the database's clock is back at its previous time; ignored its answers in between", "answers", c.looks)
			c.returns = min(c.returns+1, clockDoublings)
		}
		if a.answered.Sub(c.doubted) > clockCalm {
			c.returns = 0
		}
		c.believe(a.corrects(*c.believed))
	case c.suspect == nil || a.against(*c.suspect).Abs() > clockAgrees:
		log.Warn("the database's clock has jumped; starting, ending and removing nothing until its answers agree",
			"off", far.Round(time.Millisecond), "answers", c.enough())
		c.suspect, c.looks, c.doubted = &reading{at: a.answered, there: a.there}, 1, a.answered
	default:
		c.suspect, c.looks, c.doubted = a.corrects(*c.suspect), c.looks+1, a.answered
		if c.looks >= c.enough() {
			log.Warn("following the new time of the database's clock", "off", far.Round(time.Millisecond), "answers", c.looks)
			c.returns = 0
			c.believe(c.suspect)
		}
	}
}

func (c *clock) believe(r *reading) { c.believed, c.confirmed, c.suspect, c.looks = r, true, nil, 0 }

// enough returns how many agreeing answers a jump requires.
func (c *clock) enough() int { return clockLooks << c.returns }

// show publishes the result for readers. Before the first accepted answer it publishes the
// database's time although it is in doubt.
func (c *clock) show() {
	s := &shown{reading: *c.believed}
	if c.suspect != nil {
		if !c.confirmed {
			s.reading = *c.suspect
		}
		s.doubt = fmt.Sprintf("the database's clock is %v off; Almanac starts, ends and removes nothing until %d more of its answers agree",
			c.suspect.there.Sub(c.believed.time(c.suspect.at)).Round(time.Second), c.enough()-c.looks)
	}
	c.shown.Store(s)
}
