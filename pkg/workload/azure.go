// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// AzureMadeUp describes what the reader makes up about the virtual machines of the Azure traces.
const AzureMadeUp = "The traces have times and lifetimes in bins only. Made up, from the seed: when in its five minutes a batch " +
	"comes, and how long a machine lives within the bin of its lifetime, both uniformly; and how long one lives on that still ran when " +
	"its part of the trace was cut off, by the product-limit estimate of Kaplan and Meier over the lines so far. " +
	"Which machines are preemptible is made up too: a share of the batches. The traces have no disks."

// azureTick is the unit to which the times of the traces are rounded down, in seconds.
const azureTick = 300

// AzureOptions configure how the traces are read.
type AzureOptions struct {
	Flavors AzureFlavors
	Bins    AzureBins
	// Keep is the share of the batches that are kept, from 0 to 1; Preemptible is the share of the
	// batches whose machines are preemptible.
	Keep, Preemptible float64
}

// Azure is a Stream of virtual machines, one Job for each, from the traces of batches that
// huaweicloud/trace_generation_rnn derived from the Azure Public Dataset V1 (Cortez et al.,
// "Resource Central", SOSP 2017): a file of flavors and a file of lifetimes, read in parallel.
// Times are seconds since the start of the dataset; the User of a Job is its batch, and its Line
// is from the file of flavors. AzureMadeUp describes what is not in the files.
type Azure struct {
	o                  AzureOptions
	chance             *rand.Rand
	flavors, lifetimes azureLines
	ledger             ledger
	lived              survival
	used               int64 // lines

	machines []azureMachine // of the latest lines
	next     int            // index of the next machine
	thinned  int64
	ended    error
}

// azureMachine is one machine of a batch, as a line describes it.
type azureMachine struct {
	number, batch int // on its line, from 1
	shape         resource.Vector
	bin           int
	cut           bool

	submit, runtime int64
	preemptible     bool
}

// NewAzure returns a reader of both files. The error is an Invalid fault for a wrong share.
func NewAzure(flavors, lifetimes io.Reader, chance *rand.Rand, o AzureOptions) (*Azure, error) {
	if err := share("keep", o.Keep); err != nil {
		return nil, err
	}
	if err := share("preemptible", o.Preemptible); err != nil {
		return nil, err
	}
	a := &Azure{
		o: o, chance: chance, lived: survival{ended: make([]int64, len(o.Bins)), reached: make([]int64, len(o.Bins))},
		flavors: azureLines{lines: lines{r: bufio.NewReader(flavors)}}, lifetimes: azureLines{lines: lines{r: bufio.NewReader(lifetimes)}},
	}
	return a, nil
}

// Account counts the used lines of the file of flavors and the skipped lines of both files. Its
// Jobs is the number of returned machines.
func (a *Azure) Account() Account { return a.ledger.account() }

// Thinned returns the number of machines that were left out because their batch was not kept.
func (a *Azure) Thinned() int64 { return a.thinned }

// Next returns the next machine.
func (a *Azure) Next() (Job, error) {
	for a.next == len(a.machines) {
		if a.ended == nil {
			a.ended = a.read()
		}
		if a.ended != nil {
			return Job{}, a.ended
		}
	}
	m := a.machines[a.next]
	a.next++
	a.ledger.jobs++
	line := a.flavors.number
	return Job{
		ID: fmt.Sprintf("%d-%d", line, m.number), Line: line, Submit: m.submit, Runtime: m.runtime, Waited: -1, Size: 1,
		Shape: m.shape, Preemptible: m.preemptible, User: fmt.Sprintf("%d/%d", line, m.batch),
	}, nil
}

// The reasons to skip a line of the traces.
const (
	azureAlone  = "has no partner of the same time in the other file"
	azureUneven = "has not as many batches and machines as its partner"

	azureFlavor   = "has a flavor that is not in the map"
	azureLifetime = "has a lifetime that is none, or in a bin that is not in the map"
)

// read reads the next pair of lines with the same time.
func (a *Azure) read() error {
	a.machines, a.next = a.machines[:0], 0
	if err := a.pair(); err != nil {
		return a.end(err)
	}
	a.ledger.lines++
	if why := a.parse(); why != "" {
		a.machines = a.machines[:0]
		a.ledger.skip(why, a.flavors.number)
		return nil
	}
	a.used++
	a.makeUp()
	return nil
}

// end returns the error at the end of the files, which is a fault if no line could be used.
func (a *Azure) end(err error) error {
	if errors.Is(err, io.EOF) && a.used == 0 {
		message := "there are no lines in it"
		if skipped := a.ledger.account().Skipped; len(skipped) > 0 {
			message = fmt.Sprintf("none of its %d lines can be used: line %d %s", a.ledger.lines, skipped[0].First[0], skipped[0].Reason)
		}
		return fault.Field("trace", "%s", message)
	}
	return err
}

// pair advances both files to lines with the same time.
func (a *Azure) pair() error {
	if err := a.advance(&a.flavors); err != nil {
		return err
	}
	if err := a.advance(&a.lifetimes); err != nil {
		return err
	}
	for a.flavors.time != a.lifetimes.time {
		behind := &a.flavors
		if a.lifetimes.time < a.flavors.time {
			behind = &a.lifetimes
		}
		a.ledger.lines++
		a.ledger.skip(azureAlone, behind.number)
		if err := a.advance(behind); err != nil {
			return err
		}
	}
	return nil
}

// advance reads the next line of one file with a later time than the line before.
func (a *Azure) advance(file *azureLines) error {
	for {
		why, err := file.advance()
		if err != nil || why == "" {
			return err
		}
		a.ledger.lines++
		a.ledger.skip(why, file.number)
	}
}

// azureLines reads one of the two files.
type azureLines struct {
	lines
	row   row
	time  int64
	begun bool
	cells []byte // the text after the time
}

// advance reads the next line, whose time must be later than that of the line before. why is the reason
// to skip it.
func (l *azureLines) advance() (why string, err error) {
	line, why, err := l.next()
	if err != nil || why != "" {
		return why, err
	}
	l.row.split(line)
	if len(l.row.fields) > 2 {
		return fewColumns, nil
	}
	before := l.time
	at := l.row.time(0)
	switch {
	case l.row.why != "":
		return l.row.why, nil
	case l.begun && at <= before:
		return notLater, nil
	}
	l.time, l.begun, l.cells = at, true, nil
	if len(l.row.fields) > 1 {
		l.cells = l.row.fields[1]
	}
	return "", nil
}

// cell returns the next cell of the line; more is false after the last one.
func (l *azureLines) cell() (cell []byte, more bool) {
	for len(l.cells) > 0 {
		cell, l.cells, _ = bytes.Cut(l.cells, []byte{','})
		if len(cell) > 0 {
			return cell, true
		}
	}
	return nil, false
}

// parse reads the machines of the two lines, or returns the reason to skip them.
func (a *Azure) parse() (why string) {
	for batch, number := 1, 1; ; {
		flavor, more := a.flavors.cell()
		lifetime, asMany := a.lifetimes.cell()
		if more != asMany || more && (flavor[0] == '|') != (lifetime[0] == '|') {
			return azureUneven
		}
		if !more {
			return ""
		}
		if flavor[0] == '|' {
			batch++
			continue
		}
		shape, known := a.o.Flavors[string(flavor)]
		if !known {
			return azureFlavor
		}
		bin, cut, ok := a.bin(lifetime)
		if !ok {
			return azureLifetime
		}
		a.machines = append(a.machines, azureMachine{number: number, batch: batch, shape: shape, bin: bin, cut: cut})
		number++
	}
}

// makeUp draws the values that the files lack, leaves out batches that are not kept, and sorts the
// machines by Submit. The random numbers do not depend on the shares: a batch that is kept, or
// preemptible, with a smaller share is also with a larger one.
func (a *Azure) makeUp() {
	kept, batch, keep := a.machines[:0], 0, false
	var submit int64
	var preemptible bool
	for _, m := range a.machines {
		if m.batch != batch {
			batch = m.batch
			submit = a.flavors.time - azureTick + a.chance.Int64N(azureTick)
			keep, preemptible = a.chance.Float64() < a.o.Keep, a.chance.Float64() < a.o.Preemptible
		}
		m.submit, m.runtime, m.preemptible = submit, a.runtime(m.bin, m.cut), preemptible
		if keep {
			kept = append(kept, m)
		} else {
			a.thinned++
		}
	}
	a.machines = kept
	slices.SortStableFunc(a.machines, func(x, y azureMachine) int { return cmp.Compare(x.submit, y.submit) })
}

// bin parses a lifetime, such as "U13" for a machine that ended in bin 13, or "C46" for one that
// still ran when its observation was cut off in bin 46.
func (a *Azure) bin(cell []byte) (bin int, cut, ok bool) {
	if len(cell) < 2 || cell[0] != 'U' && cell[0] != 'C' {
		return 0, false, false
	}
	n, why := whole(cell[1:], int64(len(a.o.Bins))-1)
	return int(n), cell[0] == 'C', why == "" && n >= 0
}

// runtime draws a lifetime, in seconds, within its bin, or beyond the bin if the observation was
// cut off.
func (a *Azure) runtime(bin int, cut bool) int64 {
	a.lived.add(bin, cut)
	if cut {
		bin = a.lived.beyond(bin, a.chance)
	}
	b := a.o.Bins[bin]
	return max(1, b.From+a.chance.Int64N(b.To-b.From))
}

// survival counts the lifetimes of machines by bin.
type survival struct {
	ended   []int64 // in the bin
	reached []int64 // the bin
}

// add counts a virtual machine that lived until that bin. cut means that it still ran at the end of the
// trace.
func (s *survival) add(bin int, cut bool) {
	for b := range bin + 1 {
		s.reached[b]++
	}
	if !cut {
		s.ended[bin]++
	}
}

// beyond draws the bin in which a machine ends that was observed until bin. Each later bin has
// the probability that a machine that reaches it ends there (Kaplan and Meier 1958).
func (s *survival) beyond(bin int, chance *rand.Rand) int {
	last := len(s.ended) - 1
	for b := bin + 1; b < last; b++ {
		if chance.Float64()*float64(s.reached[b]) < float64(s.ended[b]) {
			return b
		}
	}
	return last
}
