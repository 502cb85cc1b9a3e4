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

// AzureMadeUp says what of the virtual machines of the Azure traces is made up.
const AzureMadeUp = "The traces have times and lifetimes in bins only. Made up, from the seed: when in its five minutes a batch " +
	"comes, and how long a machine lives within the bin of its lifetime, both uniformly; and how long one lives on that still ran when " +
	"its part of the trace was cut off, by the product-limit estimate of Kaplan and Meier over the lines so far. " +
	"Which machines are preemptible is made up too: a share of the batches. The traces have no disks."

// azureTick is what the times of the traces are rounded down to, in seconds.
const azureTick = 300

// AzureOptions say how the traces are read.
type AzureOptions struct {
	Flavors AzureFlavors
	Bins    AzureBins
	// Keep is the share of the batches that are kept, from 0 to 1, and Preemptible that of
	// those whose machines are preemptible.
	Keep, Preemptible float64
}

// Azure is a Stream of virtual machines, a Job for each, from the traces of batches that
// huaweicloud/trace_generation_rnn made of the Azure Public Dataset V1 (Cortez et al.,
// "Resource Central", SOSP 2017): a file of flavors and one of lifetimes, read in parallel.
// Times are seconds since the dataset began; a Job's User is its batch, and its Line that of
// the file of flavors. AzureMadeUp says what is not in the files.
type Azure struct {
	o                  AzureOptions
	chance             *rand.Rand
	flavors, lifetimes azureLines
	ledger             ledger
	lived              survival
	used               int64 // lines

	machines []azureMachine // of the lines that were read last
	next     int            // of them
	thinned  int64
	ended    error
}

// azureMachine is one of a line.
type azureMachine struct {
	number, batch int // on its line, from 1
	shape         resource.Vector
	bin           int
	cut           bool

	submit, runtime int64
	preemptible     bool
}

// NewAzure reads both files. It fails with an Invalid fault where a share is none.
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

// Account says how many lines of the file of flavors were used, with those that were left
// out of either file; its Jobs are the machines given.
func (a *Azure) Account() Account { return a.ledger.account() }

// Thinned is how many machines were left out since their batch was not kept.
func (a *Azure) Thinned() int64 { return a.thinned }

// Next gives the next machine.
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

// The reasons for which lines of the traces are skipped.
const (
	azureAlone  = "has no partner of the same time in the other file"
	azureUneven = "has not as many batches and machines as its partner"

	azureFlavor   = "has a flavor that is not in the map"
	azureLifetime = "has a lifetime that is none, or in a bin that is not in the map"
)

// read reads the next pair of lines of one time.
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

// end makes of the end of files in which nothing could be used an error.
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

// pair brings both files to lines of one time.
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

// advance reads on to the next line of one file that has a time later than the one before.
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

// azureLines are those of one of the two files.
type azureLines struct {
	lines
	row   row
	time  int64
	begun bool
	cells []byte // what stands after the time
}

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

// cell cuts the next cell off.
func (l *azureLines) cell() (cell []byte, more bool) {
	for len(l.cells) > 0 {
		cell, l.cells, _ = bytes.Cut(l.cells, []byte{','})
		if len(cell) > 0 {
			return cell, true
		}
	}
	return nil, false
}

// parse gives the machines of the two lines, or why they cannot be used.
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

// makeUp draws what the files do not have, leaves out batches that are not kept, and puts
// the machines in the order of their Submit. The same is drawn whatever the shares are, so
// that what is kept, or preemptible, with a smaller one is so with a larger one.
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

// bin reads a lifetime, such as "U13" of a machine that ended and "C46" of one that was
// cut off.
func (a *Azure) bin(cell []byte) (bin int, cut, ok bool) {
	if len(cell) < 2 || cell[0] != 'U' && cell[0] != 'C' {
		return 0, false, false
	}
	n, why := whole(cell[1:], int64(len(a.o.Bins))-1)
	return int(n), cell[0] == 'C', why == "" && n >= 0
}

// runtime draws a lifetime within its bin, or beyond it where it was cut off.
func (a *Azure) runtime(bin int, cut bool) int64 {
	a.lived.add(bin, cut)
	if cut {
		bin = a.lived.beyond(bin, a.chance)
	}
	b := a.o.Bins[bin]
	return max(1, b.From+a.chance.Int64N(b.To-b.From))
}

// survival counts how long machines have lived, by bin.
type survival struct {
	ended   []int64 // in the bin
	reached []int64 // the bin
}

func (s *survival) add(bin int, cut bool) {
	for b := range bin + 1 {
		s.reached[b]++
	}
	if !cut {
		s.ended[bin]++
	}
}

// beyond draws the bin in which one ends that was seen until bin: each later one with the
// share of those that ended there of those that reached it (Kaplan and Meier 1958).
func (s *survival) beyond(bin int, chance *rand.Rand) int {
	last := len(s.ended) - 1
	for b := bin + 1; b < last; b++ {
		if chance.Float64()*float64(s.reached[b]) < float64(s.ended[b]) {
			return b
		}
	}
	return last
}
