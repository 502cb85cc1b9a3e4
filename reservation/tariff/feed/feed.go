// SPDX-License-Identifier: Apache-2.0

// Package feed reads the tariff from a file or over HTTP, again and again, and keeps the last one that was good.
package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/tariff"
)

// Options are where the tariff is, and how old it may be.
type Options struct {
	// Source is the path of a file, or a URL; empty means that there is no tariff.
	Source  string
	Every   time.Duration // between two readings
	Timeout time.Duration // of a reading, with its whole answer
	MaxAge  int64         // of the tariff, in seconds; 0 means any

	Now func() span.Instant
}

// mostBytes is the largest size of a tariff: twice as much as the longest lines need.
const mostBytes = 4 << 20

// Check returns an Invalid fault for a source that can be neither a file nor a URL that is read.
func (o Options) Check() error {
	if !strings.Contains(o.Source, "://") {
		return nil
	}
	at, err := url.Parse(o.Source)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return fault.Field("source", "must be the path of a file, or a URL such as https://prices.example.org/day-ahead.csv")
	}
	return nil
}

// Feed is the tariff of a source. It is safe for concurrent use.
type Feed struct {
	options Options
	http    *http.Client
	newest  atomic.Pointer[tariff.Reading]
	text    []byte // from which the newest was read
}

// New returns the feed of a source, without reading it.
func New(o Options) *Feed {
	return &Feed{options: o, http: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}}
}

// Newest returns the last tariff that was good; nil if there was none.
func (f *Feed) Newest() *tariff.Reading { return f.newest.Load() }

// Job returns the work that reads the source. Only one such job may run.
func (f *Feed) Job() job.Job {
	return job.Job{Name: "tariff", Every: f.options.Every, Step: f.Read}
}

// Read reads the source. If it cannot be read, the tariff remains as it was. A stale one is an error too.
func (f *Feed) Read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.options.Timeout)
	defer cancel()
	read := f.file
	if strings.Contains(f.options.Source, "://") {
		read = f.fetch
	}
	text, written, err := read(ctx)
	if err != nil {
		return fmt.Errorf("read the tariff: %w", err)
	}
	before := f.newest.Load()
	curve := (*tariff.Curve)(nil)
	if before != nil && bytes.Equal(text, f.text) {
		curve = before.Curve
	} else if curve, err = tariff.Read(text); err != nil {
		return fmt.Errorf("read the tariff: %w", err)
	}
	f.text = text
	next := &tariff.Reading{Curve: curve, Written: written, MaxAge: f.options.MaxAge}
	f.newest.Store(next)
	if next.Stale(f.options.Now()) {
		return fault.New(fault.Unavailable, "the tariff is stale: it was written at %v, and [tariff] max_age is %v", written, time.Duration(next.MaxAge)*time.Second)
	}
	return nil
}

// file returns the content of a file, and when it was written.
func (f *Feed) file(context.Context) (text []byte, written span.Instant, err error) {
	file, err := os.Open(f.options.Source)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	about, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !about.Mode().IsRegular() {
		return nil, 0, fault.New(fault.Invalid, "%s is no regular file", f.options.Source)
	}
	text, err = bounded(file)
	return text, span.At(about.ModTime()), err
}

// fetch returns the answer of a server, and when it was written: what the server says, or else now.
func (f *Feed) fetch(ctx context.Context) (text []byte, written span.Instant, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.options.Source, nil)
	if err != nil {
		return nil, 0, withoutURL(err)
	}
	request.Header.Set("Accept", "text/csv")
	request.Header.Set("User-Agent", "almanac")
	answer, err := f.http.Do(request)
	if err != nil {
		return nil, 0, withoutURL(err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return nil, 0, fault.New(fault.Unavailable, "%s answers %s", request.URL.Host, answer.Status)
	}
	written = f.options.Now()
	if at, err := http.ParseTime(answer.Header.Get("Last-Modified")); err == nil {
		written = min(written, span.At(at))
	}
	text, err = bounded(answer.Body)
	return text, written, err
}

// withoutURL returns an error without the address, which may contain a token.
func withoutURL(err error) error {
	if of, is := errors.AsType[*url.Error](err); is {
		return of.Err
	}
	return err
}

// bounded reads a whole text.
func bounded(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, mostBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostBytes {
		return nil, fault.New(fault.TooLarge, "it is larger than %d MiB", mostBytes>>20)
	}
	return text, nil
}
