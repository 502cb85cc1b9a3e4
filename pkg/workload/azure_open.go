package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// azureParts are the parts of the Azure traces that have lifetimes, in their order.
var azureParts = []string{"dev", "test"}

// AzureFiles is the Azure traces of a folder, one part after the other.
type AzureFiles struct {
	parts   []*Azure
	current int
	closers []io.Closer
}

// OpenAzure opens the traces in a folder with the file names of
// huaweicloud/trace_generation_rnn, compressed with gzip or not: flav_map.txt,
// v1.interval_map.txt, and v1.dev.txt and v1.test.txt with the lifetimes v1.dev.c*.txt and
// v1.test.c*.txt. One part may be missing. AzureOptions defines the shares. The error is an
// Invalid fault if a file is missing or wrong.
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

// matching returns the files of a name or pattern, compressed with gzip or not.
func matching(folder, pattern string) []string {
	plain, _ := filepath.Glob(filepath.Join(folder, pattern)) // the pattern is valid
	zipped, _ := filepath.Glob(filepath.Join(folder, pattern+".gz"))
	return slices.Concat(plain, zipped)
}

func there(folder, pattern string) bool { return len(matching(folder, pattern)) > 0 }

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

// Next returns the next machine, with its part before its ID.
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

// Thinned returns how many machines were left out because their batch was not kept.
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
