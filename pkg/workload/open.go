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

// Formats are those of files that can be read: the Standard Workload Format, the Grid
// Workload Format, leases of Haizea, reservations of OAR, and CSV with a header.
var Formats = []string{"swf", "gwf", "lwf", "oar", "csv"}

// OpenOptions say how a file is read.
type OpenOptions struct {
	// Format is one of Formats; empty has it told from the content, or else from the name.
	Format string
	// ProcsPerHost is how many processors a host has, for formats that count processors: a
	// job gets as many hosts as it needs for its own. 0 is 1.
	ProcsPerHost int
	// MostSize is how many hosts the machine has: larger jobs are skipped. 0 is no bound.
	MostSize int
	// Within bounds the starts of reservations of OAR; the zero Span is the time of
	// Grid'5000's log for that log, and none for others.
	Within span.Span
	// MakeUp makes up what reservations of OAR lack; see OARMadeUp.
	MakeUp bool
	// Longest is how many seconds a job may last at most, begin after it was asked for, and be
	// asked for after the one before it; larger estimates are cut to it. 0 is no bound.
	Longest int64
	// Ahead is how many jobs are looked ahead for order; 0 is DefaultAhead.
	Ahead int
}

// Check refuses options that make no sense, by an Invalid fault.
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
		return fault.Field("ahead", "a reader looks ahead by 1 job at least")
	}
	return nil
}

// File is the jobs of a file in the order of their submission.
type File struct {
	reader  *reader
	ordered *Ordered
	close   func() error
}

// Open opens a file, gzip'ed or not. The error is an Invalid fault where it is not there, no
// regular file, or nothing that is known.
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

// regular opens a regular file. Anything else is refused before it is opened, which may wait
// for ever: whoever looks through a trace before using it finds a pipe empty the second time.
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

// Read reads what a file of a name has in it, which may be gzip'ed. The name only helps to
// tell the format, and may be empty.
func Read(r io.Reader, name string, o OpenOptions) (*File, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	text, err := unzipped(r)
	if err != nil {
		return nil, err
	}
	if o.Format == "" {
		if o.Format, err = recognise(text, name); err != nil {
			return nil, err
		}
	}
	f := &File{reader: &reader{mostSize: o.MostSize, longest: o.Longest, format: o.Format}, close: func() error { return nil }}
	if err := f.reader.begin(text, o); err != nil {
		return nil, err
	}
	ahead := o.Ahead
	if ahead == 0 {
		ahead = DefaultAhead
	}
	f.ordered = InOrder(f.reader, ahead)
	f.ordered.mostGap = o.Longest
	return f, nil
}

// buffered is how many bytes are read at once; the format is told from so many.
const buffered = 64 << 10

// unzipped gives the text, whatever it is packed in and without a byte order mark.
func unzipped(r io.Reader) (*bufio.Reader, error) {
	text := bufio.NewReaderSize(r, buffered)
	if magic, _ := text.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		zipped, err := gzip.NewReader(text)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, broken(0, err)
		case err != nil:
			return nil, &fault.Error{Kind: fault.Invalid, Message: "it is gzip'ed, but its beginning is broken", Err: err}
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

// Next implements Stream.
func (f *File) Next() (Job, error) { return f.ordered.Next() }

// Format is that of the file, one of Formats.
func (f *File) Format() string { return f.reader.format }

// Header gives what the file says of itself before its first job.
func (f *File) Header() Header { return f.reader.header }

// Account gives what was read so far. Jobs that are read ahead count.
func (f *File) Account() Account {
	a, late := f.reader.account(), f.ordered.Late()
	for _, s := range late.Skipped {
		a.Jobs -= s.Lines
		a.Skipped = append(a.Skipped, s)
	}
	return a
}

// Close closes the file.
func (f *File) Close() error { return f.close() }

// named puts the name of a file before what is wrong with it.
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
