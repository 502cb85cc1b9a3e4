package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// databaseClock tells the time of a database.
type databaseClock interface {
	Now(ctx context.Context) (time.Time, error)
}

const (
	clockEvery = 10 * time.Second
	// worthSaying is how far the clocks may be apart before the log has it.
	worthSaying = time.Second
	// clockStep is how far an answer may be from where this machine's stopwatch says that the
	// database's clock must be by now.
	clockStep = 5 * time.Second
	// clockAgrees is how far answers that are further away may be apart and agree.
	clockAgrees = time.Second
	// clockLooks is how many answers in a row must agree until they are believed: two minutes
	// of them. Each return to the time before doubles it, up to clockDoublings times: behind
	// one address may be nodes that go by different clocks.
	clockLooks     = 12
	clockDoublings = 5
	// clockCalm is how long no answer must be far away until it is clockLooks again.
	clockCalm = time.Hour
)

// clock tells the database's time, so that all replicas agree on what is due. It runs on
// this machine's stopwatch, which nobody sets, and is set by the database's answers.
//
// An answer that is far from what it must be is not believed before several agree: who
// carries out an end too early deletes servers that are somebody's. Until then the clock
// goes on as it was, and doubt says why.
type clock struct {
	shown atomic.Pointer[shown] // nil before the first answer

	// These are of set alone.
	believed  *reading // nil before the first answer
	confirmed bool     // by an answer of the database
	suspect   *reading // what the last answers say that are not believed; nil is none
	looks     int      // that agree on the suspect
	returns   int      // to the time before, each from a suspect
	doubted   time.Time
	said      time.Duration
}

// shown is what others see of a clock.
type shown struct {
	reading
	doubt string
}

// reading is the database's time at a moment of this machine's stopwatch.
type reading struct{ at, there time.Time }

// time is the database's time at another moment.
func (r reading) time(at time.Time) time.Time { return r.there.Add(at.Sub(r.at)) }

func (c *clock) now() span.Instant { return span.At(c.time(time.Now())) }

func (c *clock) time(at time.Time) time.Time {
	if s := c.shown.Load(); s != nil {
		return s.time(at)
	}
	return at
}

// ahead is what the database's clock is ahead of this machine's.
func (c *clock) ahead() time.Duration {
	at := time.Now()
	return c.time(at).Sub(at.Round(0))
}

// doubt says why nothing that cannot be undone may be begun by what time it is, in a
// sentence; empty where it may.
func (c *clock) doubt() string {
	if s := c.shown.Load(); s != nil {
		return s.doubt
	}
	return ""
}

// answer is a time of the database's, which it was at some moment between two of this
// machine's.
type answer struct{ asked, answered, there time.Time }

// against is by how much the answer contradicts a reading: one that took long contradicts
// little.
func (a answer) against(r reading) time.Duration {
	least, most := a.there.Sub(r.time(a.answered)), a.there.Sub(r.time(a.asked))
	return min(max(0, least), most)
}

// corrects returns the reading as far as the answer contradicts it.
func (a answer) corrects(r reading) *reading {
	return &reading{at: a.answered, there: r.time(a.answered).Add(a.against(r))}
}

// set asks the database for its time.
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
		log.Warn("this machine's clock and the database's differ; the database's counts", "database_ahead", ahead.Round(time.Millisecond))
	}
	return nil
}

// judge takes an answer over, or holds it against the suspect.
func (c *clock) judge(a answer, log *slog.Logger) {
	far := a.against(*c.believed)
	switch {
	case far.Abs() <= clockStep:
		if c.suspect != nil {
			log.Warn("the database's clock is again where it was; what it said in between was not believed", "answers", c.looks)
			c.returns = min(c.returns+1, clockDoublings)
		}
		if a.answered.Sub(c.doubted) > clockCalm {
			c.returns = 0
		}
		c.believe(a.corrects(*c.believed))
	case c.suspect == nil || a.against(*c.suspect).Abs() > clockAgrees:
		log.Warn("the database's clock is not where it must be; nothing is started, ended or taken away until its answers agree",
			"off", far.Round(time.Millisecond), "answers", c.enough())
		c.suspect, c.looks, c.doubted = &reading{at: a.answered, there: a.there}, 1, a.answered
	default:
		c.suspect, c.looks, c.doubted = a.corrects(*c.suspect), c.looks+1, a.answered
		if c.looks >= c.enough() {
			log.Warn("the database's clock has another time now, which counts from here on", "off", far.Round(time.Millisecond), "answers", c.looks)
			c.returns = 0
			c.believe(c.suspect)
		}
	}
}

func (c *clock) believe(r *reading) { c.believed, c.confirmed, c.suspect, c.looks = r, true, nil, 0 }

// enough is how many answers that agree are believed.
func (c *clock) enough() int { return clockLooks << c.returns }

// show lets others see what was judged. As long as the database has confirmed nothing its
// own time is shown, though it is in doubt.
func (c *clock) show() {
	s := &shown{reading: *c.believed}
	if c.suspect != nil {
		if !c.confirmed {
			s.reading = *c.suspect
		}
		s.doubt = fmt.Sprintf("the database's clock is %v off; nothing is started, ended or taken away until %d more of its answers agree",
			c.suspect.there.Sub(c.believed.time(c.suspect.at)).Round(time.Second), c.enough()-c.looks)
	}
	c.shown.Store(s)
}
