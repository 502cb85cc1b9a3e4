// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/power"
)

const (
	// side is the number of rows of the matrices, and block that of the blocks that are multiplied
	// at once: three blocks need 96 KiB, which fits into second-level caches.
	side  = 512
	block = 64
	// flop is the number of floating-point operations of one multiplication: for each of the
	// side² results side multiplications and side additions.
	flop = 2 * side * side * side
	// measureTimeout limits one measurement of the watts.
	measureTimeout = 10 * time.Second
)

type benchmark struct {
	host          string
	seconds, idle time.Duration
	wattsCommand  string
	machine       string
	watts         func(ctx context.Context) (float64, error) // nil: not measured
	errors        io.Writer
}

// benchmarkCommand returns `benchmark`.
func (s *service) benchmarkCommand() *cobra.Command {
	var b benchmark
	var seconds, idle int
	c := &cobra.Command{
		Use: "benchmark", Args: cobra.NoArgs,
		Short: "Measure this machine's floating-point operations per second and per watt",
		Long: fmt.Sprintf("Run this on the host itself, while nothing else runs there. Every core repeatedly multiplies its own matrices of\n"+
			"%d × %d doubles, in blocks of %d × %d: 2 × %d³ floating-point operations each time. The watts are sampled every second,\n"+
			"first while the machine is idle, then while it works, after the first tenth of the time; the means count. The program\n"+
			"is plain Go without vector instructions: compare hosts with each other, not with other benchmarks.\n\n"+
			"The last lines have the form of the table that [energy] efficiency_file names. Values that were not measured are empty.",
			side, side, block, block, side),
		Example: "  almanac-power benchmark --machine cmp-017\n  almanac-power benchmark --watts-command '/usr/local/bin/pdu-watts outlet-4' --seconds 120",
		RunE: func(c *cobra.Command, _ []string) error {
			b.seconds, b.idle, b.errors = time.Duration(seconds)*time.Second, time.Duration(idle)*time.Second, c.ErrOrStderr()
			if seconds < 1 || idle < 0 {
				return fault.New(fault.Invalid, "--seconds must be at least 1, and --idle-seconds not negative")
			}
			done, err := s.meter(&b)
			if err != nil {
				return err
			}
			defer done()
			return b.run(c.Context(), c.OutOrStdout())
		},
	}
	flags := c.Flags()
	flags.IntVar(&seconds, "seconds", 60, "duration of the work in seconds")
	flags.IntVar(&idle, "idle-seconds", 15, "duration of the idle measurement before the work, in seconds")
	flags.StringVar(&b.host, "host", "", "name of the host in the table (default: the name of --machine, else [DEFAULT] host)")
	flags.StringVar(&b.wattsCommand, "watts-command", "", "program with arguments, separated by spaces, that prints the power draw of this machine in watts")
	flags.StringVar(&b.machine, "machine", "", "host of the machines file whose BMC reports the watts")
	c.MarkFlagsMutuallyExclusive("watts-command", "machine")
	return c
}

// meter opens the source of the watts.
func (s *service) meter(b *benchmark) (done func() error, err error) {
	done = func() error { return nil }
	cfg, err := s.load()
	if err != nil {
		return done, err
	}
	if b.host == "" {
		b.host = cfg.Default.Host
		if b.machine != "" {
			b.host = b.machine
		}
	}
	if argv := strings.Fields(b.wattsCommand); len(argv) > 0 {
		b.watts = func(ctx context.Context) (float64, error) {
			said, err := power.RunProgram(ctx, argv)
			if err != nil {
				return 0, err
			}
			watts, err := strconv.ParseFloat(strings.TrimSpace(said), 64)
			if err != nil {
				return 0, fault.New(fault.Unavailable, "%s printed %.40q, which is not a number of watts", argv[0], said)
			}
			return watts, nil
		}
	}
	if b.machine == "" {
		return done, nil
	}
	machines, err := openMachines(cfg)
	if err != nil {
		return done, err
	}
	m, err := machines.of(cfg, b.machine)
	b.watts = func(ctx context.Context) (float64, error) {
		r, err := m.Machine.Read(ctx)
		return r.Watts, err
	}
	return machines.close, err
}

func (b *benchmark) run(ctx context.Context, out io.Writer) error {
	idle := 0.0
	if b.watts != nil {
		idle = b.sample(ctx, 0, b.idle)
	}
	operations, full, took := b.work(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	speed := operations / took.Seconds()
	fmt.Fprintf(out, "cores           %d\ngflops          %.2f\n", runtime.GOMAXPROCS(0), speed/1e9)
	row := energy.Efficiency{Draw: energy.Draw{Idle: idle, Full: full}}
	if full > 0 {
		row.FlopsPerWatt = speed / full
	}
	for _, line := range []struct {
		name  string
		value float64
		digit int
	}{{"idle watts", idle, 1}, {"full watts", full, 1}, {"flops per watt", row.FlopsPerWatt, 0}} {
		value := "not measured"
		if line.value > 0 {
			value = strconv.FormatFloat(line.value, 'f', line.digit, 64)
		}
		fmt.Fprintf(out, "%-15s %s\n", line.name, value)
	}
	if full == 0 {
		fmt.Fprintln(b.errors, "almanac-power: no watts were measured, so the efficiency is not known; set --machine or --watts-command")
	}
	fmt.Fprintln(out)
	table := csv.NewWriter(out)
	err := table.WriteAll([][]string{
		{"host", "flops_per_watt", "idle_watts", "full_watts", "standby_watts", "off_watts", "boot_joules"},
		{b.host, known(row.FlopsPerWatt, 0), known(idle, 1), known(full, 1), "", "", ""},
	})
	return err
}

// known formats a measured value with the number of digits after the point; it returns "" if the
// value is 0 or less, which means not measured.
func known(value float64, digits int) string {
	if value <= 0 {
		return ""
	}
	return strconv.FormatFloat(value, 'f', digits, 64)
}

// sample measures the watts each second until the time is over, at least once, and returns the mean
// of the measurements that end later than after; 0 if there are none.
func (b *benchmark) sample(ctx context.Context, after, until time.Duration) float64 {
	sum, count, failed := 0.0, 0, false
	for began := time.Now(); time.Since(began) < until && job.Pause(ctx, time.Second) == nil; {
		watts, err := b.measure(ctx)
		switch {
		case err != nil && ctx.Err() == nil && !failed:
			fmt.Fprintf(b.errors, "almanac-power: could not measure the watts: %v\n", err)
			failed = true
		case err == nil && watts > 0 && time.Since(began) >= after:
			sum += watts
			count++
		}
	}
	return sum / float64(max(1, count))
}

// measure returns the watts now; 0 if they are not measured.
func (b *benchmark) measure(ctx context.Context) (float64, error) {
	if b.watts == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	return b.watts(ctx)
}

// work makes all cores multiply until the watts are measured, and returns the number of operations,
// the watts and the duration.
func (b *benchmark) work(ctx context.Context) (operations, watts float64, took time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var done atomic.Int64
	var working sync.WaitGroup
	began := time.Now()
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			x, y, z := square(1), square(2), make([]float64, side*side)
			for ctx.Err() == nil {
				multiply(x, y, z)
				done.Add(1)
			}
		})
	}
	watts = b.sample(ctx, b.seconds/10, b.seconds)
	cancel()
	working.Wait()
	return float64(done.Load()) * flop, watts, time.Since(began)
}

// square returns a matrix of numbers near one, row after row.
func square(seed int) []float64 {
	m := make([]float64, side*side)
	for i := range m {
		m[i] = 1 + float64((i*31+seed)%17)/1024
	}
	return m
}

// multiply computes the product of x and y in z, block by block.
func multiply(x, y, z []float64) {
	clear(z)
	for i0 := 0; i0 < side; i0 += block {
		for k0 := 0; k0 < side; k0 += block {
			for j0 := 0; j0 < side; j0 += block {
				multiplyBlock(x[i0*side+k0:], y[k0*side+j0:], z[i0*side+j0:])
			}
		}
	}
}

// multiplyBlock adds the product of two blocks to a third. Each core has its own matrices, so the race
// detector, which would take a hundred times as long as the work, leaves it out.
//
//go:norace
func multiplyBlock(x, y, z []float64) {
	for i := range block {
		into := z[i*side : i*side+block]
		for k := range block {
			factor, row := x[i*side+k], y[k*side:k*side+block]
			for j, value := range row {
				into[j] += factor * value
			}
		}
	}
}
