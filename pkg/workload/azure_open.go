// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// azureParts are the parts of the Azure traces that contain lifetimes, in their order.
var azureParts = []string{"dev", "test"}

// AzureFiles is a Stream of the Azure traces in a folder, one part after the other.
type AzureFiles struct {
	parts   []*Azure
	current int
	closers []io.Closer
}

// OpenAzure opens the traces in a folder: flav_map.txt, v1.interval_map.txt, and one or both of the
// parts dev and test. The part dev is v1.dev.txt with the lifetimes v1.dev.c*.txt; test has the
// same form. The names are those of huaweicloud/trace_generation_rnn; each file may be compressed
// with gzip. AzureOptions defines keep and preemptible. The error is an Invalid fault if a file is
// missing or wrong.
func OpenAzure(folder string, chance *rand.Rand, keep, preemptible float64) (files *AzureFiles, err error) {
	f := &AzureFiles{}
	defer func() {
		if err != nil {
			err = errors.Join(named(folder, err), f.Close())
		}
	}()
	o := AzureOptions{Keep: keep, Preemptible: preemptible}
	text, err := f.open(folder, "flav_map.txt")
	if err != nil {
		return nil, err
	}
	if o.Flavors, err = ReadAzureFlavors(text); err != nil {
		return nil, named("flav_map.txt", err)
	}
	if text, err = f.open(folder, "v1.interval_map.txt"); err != nil {
		return nil, err
	}
	if o.Bins, err = ReadAzureBins(text); err != nil {
		return nil, named("v1.interval_map.txt", err)
	}
	for _, part := range azureParts {
		if !there(folder, "v1."+part+".txt") {
			continue
		}
		flavors, err := f.open(folder, "v1."+part+".txt")
		if err != nil {
			return nil, err
		}
		lifetimes, err := f.open(folder, "v1."+part+".c*.txt")
		if err != nil {
			return nil, err
		}
		a, err := NewAzure(flavors, lifetimes, chance, o)
		if err != nil {
			return nil, err
		}
		f.parts = append(f.parts, a)
	}
	if len(f.parts) == 0 {
		return nil, fault.Field("trace", "there is neither v1.dev.txt nor v1.test.txt")
	}
	return f, nil
}

// matching returns the paths of the files that match a name or pattern, compressed with gzip or
// not.
func matching(folder, pattern string) []string {
	plain, _ := filepath.Glob(filepath.Join(folder, pattern)) // the pattern is valid
	zipped, _ := filepath.Glob(filepath.Join(folder, pattern+".gz"))
	return slices.Concat(plain, zipped)
}

func there(folder, pattern string) bool { return len(matching(folder, pattern)) > 0 }

// open opens the one file of the folder that matches the pattern, unpacked if it is compressed.
func (f *AzureFiles) open(folder, pattern string) (*bufio.Reader, error) {
	names := matching(folder, pattern)
	if len(names) != 1 {
		return nil, fault.Field("trace", "there must be one file %s, compressed with gzip or not, and there are %d", pattern, len(names))
	}
	file, err := os.Open(names[0])
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "trace", Message: fmt.Sprintf("%s cannot be opened", names[0]), Err: err}
	}
	f.closers = append(f.closers, file)
	text, err := unzipped(file)
	if err != nil {
		return nil, named(names[0], err)
	}
	return text, nil
}

// Next returns the next machine. Its ID is prefixed with the number of its part, from 0.
func (f *AzureFiles) Next() (Job, error) {
	for ; f.current < len(f.parts); f.current++ {
		j, err := f.parts[f.current].Next()
		if !errors.Is(err, io.EOF) {
			j.ID = fmt.Sprintf("%d-%s", f.current, j.ID)
			return j, err
		}
	}
	return Job{}, io.EOF
}

// Account returns the sum of the accounts of the parts. The line numbers of a reason are from
// the first part that has it.
func (f *AzureFiles) Account() (sum Account) {
	for _, p := range f.parts {
		a := p.Account()
		sum.Lines, sum.Jobs = sum.Lines+a.Lines, sum.Jobs+a.Jobs
		for _, s := range a.Skipped {
			if at := slices.IndexFunc(sum.Skipped, func(known Skipped) bool { return known.Reason == s.Reason }); at >= 0 {
				sum.Skipped[at].Lines += s.Lines
			} else {
				sum.Skipped = append(sum.Skipped, s)
			}
		}
	}
	return sum
}

// Thinned returns the number of machines that were left out because their batch was not kept.
func (f *AzureFiles) Thinned() (sum int64) {
	for _, p := range f.parts {
		sum += p.Thinned()
	}
	return sum
}

// Close closes the files.
func (f *AzureFiles) Close() error {
	var errs []error
	for _, c := range f.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// AzureFlavors contains the shapes of virtual machines by the letter of their flavor.
type AzureFlavors map[string]resource.Vector

// AzureBins contains the lifetimes of virtual machines by the number of their bin.
type AzureBins []AzureBin

// AzureBin is the lifetimes of at least From and less than To seconds.
type AzureBin struct{ From, To int64 }

// mostBins is the maximum number of bins.
const mostBins = 10_000

// ReadAzureFlavors reads lines such as "2,3.5 g": VCPUs, GiB of memory, letter. The error is an
// Invalid fault at the first wrong line.
func ReadAzureFlavors(r io.Reader) (AzureFlavors, error) {
	flavors := AzureFlavors{}
	err := eachRow(r, func(fields [][]byte) string {
		vcpus, memory, _ := bytes.Cut(fields[0], []byte{','})
		n, why := whole(vcpus, mostSize)
		gib, err := strconv.ParseFloat(string(memory), 64)
		if why != "" || err != nil || n < 1 || !(gib > 0 && gib < mostSize) {
			return `must begin with a flavor, such as "2,3.5"`
		}
		flavors[string(fields[1])] = resource.Vector{VCPUs: n, MemoryMB: int64(math.Round(1024 * gib))}
		return ""
	})
	return flavors, err
}

// ReadAzureBins reads lines such as "600 2": a lifetime in seconds, rounded down to five
// minutes, and its bin. The error is an Invalid fault if the bins are not in order.
func ReadAzureBins(r io.Reader) (AzureBins, error) {
	var bins AzureBins
	err := eachRow(r, func(fields [][]byte) string {
		seconds, why := whole(fields[0], mostTime)
		bin, whyBin := whole(fields[1], mostBins)
		switch last := int64(len(bins)) - 1; {
		case why != "" || whyBin != "":
			return "must have a lifetime and its bin"
		case bin == last && bin >= 0 && seconds == bins[bin].To:
			bins[bin].To += azureTick
		case bin == last+1 && (bin == 0 && seconds == 0 || bin > 0 && seconds == bins[last].To):
			bins = append(bins, AzureBin{From: seconds, To: seconds + azureTick})
		default:
			return "must be five minutes after the line before, in the same bin or the next; the first is 0 in bin 0"
		}
		return ""
	})
	return bins, err
}

// eachRow calls use with the fields of each line, which must be two. use returns the reason why a
// line is wrong; "" if it is not.
func eachRow(r io.Reader, use func(fields [][]byte) (why string)) error {
	text := lines{r: bufio.NewReader(r)}
	var fields row
	for used := false; ; {
		line, why, err := text.next()
		switch {
		case errors.Is(err, io.EOF) && !used:
			return fault.Field("map", "has no lines")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case why == Blank:
			continue
		}
		fields.split(line)
		if why == "" && len(fields.fields) != 2 {
			why = fewColumns
		}
		if why == "" {
			why = use(fields.fields)
		}
		if why != "" {
			return fault.Field("map", "line %d %s", text.number, why)
		}
		used = true
	}
}
