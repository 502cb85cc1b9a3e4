package main

import (
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far an import is; its methods may be called by several
// goroutines.
type progress interface {
	step()
	finish()
}

// newProgress gives a bar where stderr is a terminal, and a line for every tenth
// of the rows elsewhere.
func (p *process) newProgress(rows int) progress {
	if file, ok := p.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return bar{progressbar.NewOptions(rows,
			progressbar.OptionSetWriter(p.stderr),
			progressbar.OptionSetDescription("rows"),
			progressbar.OptionSetWidth(30),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionUseANSICodes(true),
		), p}
	}
	return &tenths{process: p, rows: rows}
}

type bar struct {
	*progressbar.ProgressBar
	process *process
}

// A bar that cannot be drawn is no reason to stop what it shows.
func (b bar) step() { _ = b.Add(1) }

func (b bar) finish() { b.process.inform("") }

type tenths struct {
	process *process
	rows    int
	mu      sync.Mutex
	done    int
	printed int
}

func (t *tenths) step() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done++
	if tenth := t.done * 10 / t.rows; tenth > t.printed {
		t.printed = tenth
		t.process.inform("%d %%: %d of %d rows", tenth*10, t.done, t.rows)
	}
}

func (t *tenths) finish() {}
