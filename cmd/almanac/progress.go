// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows the progress of a long task; it is safe for concurrent use.
type progress interface {
	add(steps int)
	finish()
}

// newProgress returns a bar if stderr is a terminal, and else lines: for every tenth of the
// whole, and every minute. Both estimate the time that is left. what names the steps, such as "rows".
func (p *process) newProgress(whole int, what string) progress {
	if file, ok := p.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return bar{progressbar.NewOptions(whole,
			progressbar.OptionSetWriter(p.stderr),
			progressbar.OptionSetDescription(what),
			progressbar.OptionSetWidth(30),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionUseANSICodes(true),
		), p}
	}
	return &printed{process: p, whole: whole, what: what, at: p.now()}
}

type bar struct {
	*progressbar.ProgressBar
	process *process
}

// A bar that cannot be drawn does not stop the task.
func (b bar) add(steps int) { _ = b.Add(steps) }

func (b bar) finish() { b.process.inform("") }

type printed struct {
	process *process
	whole   int
	what    string
	mu      sync.Mutex
	done    int
	// Of the last line: the tenths, what was done, and when.
	tenths, known int
	at            time.Time
}

func (l *printed) add(steps int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done += steps
	now, tenth := l.process.now(), l.done*10/l.whole
	took := now.Sub(l.at)
	if tenth == l.tenths && took < time.Minute {
		return
	}
	// Steps at the end may take longer than those at the beginning, so that the pace since the last line counts.
	left := time.Duration(float64(took) / float64(l.done-l.known) * float64(l.whole-l.done)).Round(time.Second)
	l.tenths, l.known, l.at = tenth, l.done, now
	if left > 0 {
		l.process.inform("%d %%: %d of %d %s, about %v left", l.done*100/l.whole, l.done, l.whole, l.what, left)
	} else {
		l.process.inform("%d %%: %d of %d %s", l.done*100/l.whole, l.done, l.whole, l.what)
	}
}

func (l *printed) finish() {}

// stepped is the progress of a simulation, which reports the number of its steps after the
// first step.
type stepped struct {
	process *process
	mu      sync.Mutex
	shown   progress
	seen    int
}

func (s *stepped) done(done, of int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown == nil {
		s.shown = s.process.newProgress(of, "steps")
	}
	if done > s.seen {
		s.shown.add(done - s.seen)
		s.seen = done
	}
	if s.seen == of {
		s.shown.finish()
	}
}
