// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
)

// longestLine is the maximum size of a line, or of a lease in XML, in bytes.
const longestLine = 1 << 20

// The reasons for which a line of any format is skipped.
const (
	tooLong    = "is longer than 1 MiB"
	hasNUL     = "holds a NUL byte"
	outOfRange = "has a number out of range"
	noNumber   = "has something else where a number should be"
	fewColumns = "has too few or too many columns"
)

// lines reads the lines of a text, numbered from 1, in bounded memory.
type lines struct {
	r      *bufio.Reader
	number int64
	long   []byte // a line that is larger than the reader's buffer
}

// next returns the next line without its line break, valid until the next call, or the reason
// to skip it. The error is io.EOF after the last line, or the error of the reader.
func (l *lines) next() (line []byte, why string, err error) {
	line, err = l.r.ReadSlice('\n')
	if len(line) == 0 && err != nil {
		return nil, "", err
	}
	l.number++
	if errors.Is(err, bufio.ErrBufferFull) {
		line, why, err = l.rest(line)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", err
	}
	line = bytes.TrimRight(line, "\r\n")
	switch {
	case why != "":
		return nil, why, nil
	case bytes.IndexByte(line, 0) >= 0:
		return nil, hasNUL, nil
	case len(bytes.TrimSpace(line)) == 0:
		return nil, Blank, nil
	}
	return line, "", nil
}

// rest reads a line to its end. The buffer contained only its beginning.
func (l *lines) rest(begin []byte) (line []byte, why string, err error) {
	l.long = append(l.long[:0], begin...)
	for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
		var more []byte
		more, err = l.r.ReadSlice('\n')
		if len(l.long)+len(more) > longestLine {
			why, more = tooLong, nil
		}
		if why == "" {
			l.long = append(l.long, more...)
		}
	}
	return l.long, why, err
}

// The bounds of numbers, so that the sum of a few of them does not overflow. mostTime is 34,000
// years in seconds.
const (
	mostTime = 1 << 40
	mostSize = 1 << 30
)

// row contains the fields of one line and the first reason to skip it.
type row struct {
	fields [][]byte
	why    string
}

// split splits a line at blanks.
func (r *row) split(line []byte) {
	r.fields, r.why = r.fields[:0], ""
	for {
		line = bytes.TrimLeft(line, " \t")
		if len(line) == 0 {
			return
		}
		end := bytes.IndexAny(line, " \t")
		if end < 0 {
			end = len(line)
		}
		r.fields, line = append(r.fields, line[:end]), line[end:]
	}
}

func (r *row) fail(why string) {
	if r.why == "" {
		r.why = why
	}
}

func (r *row) text(i int) string { return string(r.fields[i]) }

// time returns field i in whole seconds, rounded down.
func (r *row) time(i int) int64 { return r.whole(i, mostTime) }

// size returns field i as a count.
func (r *row) size(i int) int { return int(r.whole(i, mostSize)) }

// whole reads field i as a whole number up to most.
func (r *row) whole(i int, most int64) int64 {
	n, why := whole(r.fields[i], most)
	if why != "" {
		r.fail(why)
	}
	return n
}

// whole parses a number, which may have a fraction, and rounds it down. why is the reason why it
// cannot be used; "" if it can.
func whole(text []byte, most int64) (n int64, why string) {
	digits, negative := text, false
	if len(text) > 1 && text[0] == '-' {
		digits, negative = text[1:], true
	}
	if len(digits) == 0 || len(digits) > 18 {
		return fraction(text, most)
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return fraction(text, most)
		}
		n = 10*n + int64(c-'0')
	}
	if n > most {
		return 0, outOfRange
	}
	if negative {
		n = -n
	}
	return n, ""
}

// fraction reads a number and rounds it down. The second result is why it could not.
func fraction(text []byte, most int64) (int64, string) {
	f, err := strconv.ParseFloat(string(text), 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && !(math.Abs(f) <= float64(most)):
		return 0, outOfRange
	case err != nil:
		return 0, noNumber
	}
	return int64(math.Floor(f)), ""
}
