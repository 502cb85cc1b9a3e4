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
	step()
	finish()
}

// newProgress returns a bar if stderr is a terminal, and else a line for every tenth of the
// whole. what names the steps, such as "rows".
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
	return &tenths{process: p, whole: whole, what: what}
}

type bar struct {
	*progressbar.ProgressBar
	process *process
}

// A bar that cannot be drawn does not stop the task.
func (b bar) step() { _ = b.Add(1) }

func (b bar) finish() { b.process.inform("") }

type tenths struct {
	process *process
	whole   int
	what    string
	mu      sync.Mutex
	done    int
	printed int
}

func (t *tenths) step() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done++
	if tenth := t.done * 10 / t.whole; tenth > t.printed {
		t.printed = tenth
		t.process.inform("%d %%: %d of %d %s", tenth*10, t.done, t.whole, t.what)
	}
}

func (t *tenths) finish() {}

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
	for ; s.seen < done; s.seen++ {
		s.shown.step()
	}
	if s.seen == of {
		s.shown.finish()
	}
}
