// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Formats are the names of the file formats: the Standard Workload Format, the Grid Workload
// Format, leases of Haizea, reservations of OAR, and CSV with a header.
var Formats = []string{"swf", "gwf", "lwf", "oar", "csv"}

// FormatsHelp describes the formats to users of the command line.
const FormatsHelp = `  csv   a header with the names of the columns, in any order, then one line for each job
        or reservation. submit or start, and end or runtime, are required:
          name, id, user        name of a reservation, id of a job, its user
          submit, start, end    times in epoch seconds or RFC 3339, UTC without a zone;
          deadline              a job with a start is a reservation
          runtime, estimate     durations in seconds, or as 2h30m
          quantity, size        number of hosts or VMs (two names of one column; 1)
          properties            filter in JSON that the hosts must pass
          vcpus, memory_mb, disk_gb, preemptible   of each VM
        A value has no line breaks. Lines that begin with # are comments.
  oar   advance reservations of Grid'5000 (Grid Workloads Archive, GWA-T-2): JobID,
        StartTime, StopTime in epoch seconds. The log has neither sizes nor submissions
  swf   Standard Workload Format: logs of parallel machines
  gwf   jobs of the Grid Workloads Archive
  lwf   leases of Haizea`

// OpenOptions configure how a file is read.
type OpenOptions struct {
	// Format is one of Formats; empty means that the content of the file determines it, or else its
	// name.
	Format string
	// ProcsPerHost is the number of processors of a host, for formats that count processors: the
	// size of a job is then the number of hosts that have as many processors. 0 means 1.
	ProcsPerHost int
	// MostSize is the number of hosts of the machine; larger jobs are skipped. 0 means no bound.
	MostSize int
	// Within is the span in which OAR reservations must start. The zero Span means the period of
	// Grid'5000's log for that log, and no bound for other logs.
	Within span.Span
	// MakeUp fills in what OAR logs do not contain; see OARMadeUp.
	MakeUp bool
	// Longest is the maximum, in seconds, of a job's run time, of the time between its submission
	// and its start, and of the time between two submissions. Larger estimates are reduced to it. 0
	// means no bound.
	Longest int64
	// Ahead is the number of jobs that the reader buffers to sort them by submission; 0 means
	// DefaultAhead.
	Ahead int
	// FileOrder disables the sorting: the jobs come in the order of the file.
	FileOrder bool
	// Skipped receives the number of each skipped line and the reason; nil means no call.
	Skipped func(line int64, reason string)
}

// Check returns an Invalid fault for options that contradict each other or are out of range.
func (o OpenOptions) Check() error {
	switch {
	case o.Format != "" && !slices.Contains(Formats, o.Format):
		return fault.Field("trace_format", "%s; the formats are %s", fault.Unknown("format", o.Format, Formats), strings.Join(Formats, ", "))
	case o.ProcsPerHost < 0:
		return fault.Field("procs_per_host", "a host has at least 1 processor")
	case o.MostSize < 0:
		return fault.Field("hosts", "there is at least 1 host")
	case o.Longest < 0:
		return fault.Field("longest", "a job lasts at least 1 s")
	case o.Ahead < 0:
		return fault.Field("ahead", "a reader looks ahead by at least 1 job")
	}
	return nil
}

// File is a Stream of the jobs of a file.
type File struct {
	Stream
	reader  *reader
	ordered *Ordered // nil: in the order of the file
	close   func() error
}

// Open opens a file, compressed with gzip or not. The error is an Invalid fault if the file
// does not exist, is not a regular file, or has an unknown format.
func Open(path string, o OpenOptions) (*File, error) {
	from, err := regular(path)
	if err != nil {
		return nil, err
	}
	f, err := Read(from, filepath.Base(path), o)
	if err != nil {
		return nil, errors.Join(named(path, err), from.Close())
	}
	f.reader.name, f.close = path, from.Close
	return f, nil
}

// regular opens a regular file. It refuses other files before opening them, which could block. A
// simulation reads the trace twice, and a pipe would be empty the second time.
func regular(path string) (*os.File, error) {
	about, err := os.Stat(path)
	switch {
	case err != nil:
	case about.IsDir():
		return nil, fault.Field("trace", "%s is a directory", path)
	case !about.Mode().IsRegular():
		return nil, fault.Field("trace", "%s is not a regular file; a trace is read several times and has to be a file", path)
	}
	var from *os.File
	if err == nil {
		from, err = os.Open(path)
	}
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "trace", Message: fmt.Sprintf("%s cannot be opened", path), Err: err}
	}
	return from, nil
}

// Read reads the content of a file, compressed with gzip or not. Its name only helps to
// recognize the format, and may be empty.
func Read(r io.Reader, name string, o OpenOptions) (*File, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	text, err := unzipped(r)
	if err != nil {
		return nil, err
	}
	if o.Format == "" {
		if o.Format, err = recognize(text, name); err != nil {
			return nil, err
		}
	}
	f := &File{reader: &reader{ledger: ledger{skipped: o.Skipped}, mostSize: o.MostSize, longest: o.Longest, format: o.Format}, close: func() error { return nil }}
	if err := f.reader.begin(text, o); err != nil {
		return nil, err
	}
	if f.Stream = f.reader; o.FileOrder {
		return f, nil
	}
	ahead := o.Ahead
	if ahead == 0 {
		ahead = DefaultAhead
	}
	f.ordered = InOrder(f.reader, ahead)
	f.ordered.mostGap, f.ordered.late.skipped = o.Longest, o.Skipped
	f.Stream = f.ordered
	return f, nil
}

// buffered is the size of the read buffer in bytes. The format is recognized from at most as many
// bytes.
const buffered = 64 << 10

// unzipped returns the text of a file, decompressed and without a byte order mark.
func unzipped(r io.Reader) (*bufio.Reader, error) {
	text := bufio.NewReaderSize(r, buffered)
	if magic, _ := text.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		zipped, err := gzip.NewReader(text)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, broken(0, err)
		case err != nil:
			return nil, &fault.Error{Kind: fault.Invalid, Message: "the file is compressed with gzip, but its beginning is damaged", Err: err}
		}
		text = bufio.NewReaderSize(zipped, buffered)
	}
	mark := []byte("\ufeff")
	if first, _ := text.Peek(len(mark)); bytes.Equal(first, mark) {
		if _, err := text.Discard(len(mark)); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// Format returns the format of the file, one of Formats.
func (f *File) Format() string { return f.reader.format }

// Header returns what the file states about itself before its first job.
func (f *File) Header() Header { return f.reader.header }

// Account returns the account of what has been read so far, including buffered jobs.
func (f *File) Account() Account {
	a := f.reader.account()
	if f.ordered == nil {
		return a
	}
	for _, s := range f.ordered.Late().Skipped {
		a.Jobs -= s.Lines
		a.Skipped = append(a.Skipped, s)
	}
	return a
}

// Close closes the file.
func (f *File) Close() error { return f.close() }

// named adds the name of a file to an error.
func named(name string, err error) error {
	f := fault.Of(err)
	if name == "" || f.Kind != fault.Invalid {
		return err
	}
	wrapped := *f
	wrapped.Message = name + ": " + f.Message
	if wrapped.Field == "" {
		wrapped.Field = "trace"
	}
	return &wrapped
}
