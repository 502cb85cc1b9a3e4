// SPDX-License-Identifier: Apache-2.0

package tariff

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// header is the first line of a tariff.
const header = "start,price"

// mostDecimals is the largest number of decimals of a price.
const mostDecimals = 9

// line is a line of a tariff: from start on, the price is digits with so many decimals; known is false if there is none.
type line struct {
	number   int
	start    span.Instant
	digits   int64
	decimals int
	known    bool
}

// Read reads a curve from text (RFC 4180): the line "start,price", and then a line for each price, in order of time, with
// the instant from which it holds, in RFC 3339, until the start of the next line, and the price as a decimal number. A
// line without a price begins a time without one. The last line has none, so that a text that was cut off is not taken
// for a whole one.
//
//	start,price
//	2026-12-01T00:00:00Z,87.34
//	2026-12-01T01:00:00Z,-3.1
//	2026-12-01T02:00:00Z,
//
// Prices of the curve are integers in the smallest unit of the text. The error is an Invalid fault that names the line.
func Read(text []byte) (*Curve, error) {
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord, r.ReuseRecord, r.TrimLeadingSpace = -1, true, true
	var lines []line
	for first := true; ; first = false {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if wrong, is := errors.AsType[*csv.ParseError](err); is {
			return nil, wrongLine(wrong.Line, "%v", wrong.Err)
		}
		if err != nil {
			return nil, err
		}
		number, _ := r.FieldPos(0)
		switch {
		case first && strings.Join(fields, ",") != header:
			return nil, wrongLine(number, "must be %s, and is %.40q", header, strings.Join(fields, ","))
		case first:
			continue
		case len(fields) != 2:
			return nil, wrongLine(number, "must have a start and a price, and has %s", fault.Counted(len(fields), "field"))
		case len(lines) > MostSteps:
			return nil, wrongLine(number, "is one too many; there may be %d prices", MostSteps)
		}
		l, err := readLine(number, fields[0], fields[1])
		if err != nil {
			return nil, err
		}
		if len(lines) > 0 && l.start <= lines[len(lines)-1].start {
			return nil, wrongLine(number, "start %v is not later than that of the line before, %v", l.start, lines[len(lines)-1].start)
		}
		lines = append(lines, l)
	}
	return curveOf(lines)
}

func wrongLine(number int, format string, args ...any) error {
	return fault.New(fault.Invalid, "line %d: "+format, append([]any{number}, args...)...)
}

// price is the form of a price: a sign, digits, decimals.
var price = regexp.MustCompile(`^([+-]?)([0-9]+)(?:\.([0-9]+))?$`)

func readLine(number int, start, value string) (line, error) {
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(start))
	if err != nil || at.Nanosecond() != 0 {
		return line{}, wrongLine(number, "start %.40q is no whole second in the form 2026-12-01T00:00:00Z", start)
	}
	l := line{number: number, start: span.At(at)}
	if value = strings.TrimSpace(value); value == "" {
		return l, nil
	}
	parts := price.FindStringSubmatch(value)
	if parts == nil {
		return line{}, wrongLine(number, "price %.40q is no decimal number such as 87.34 or -3; leave it empty where none is known", value)
	}
	decimals := strings.TrimRight(parts[3], "0")
	if len(decimals) > mostDecimals {
		return line{}, wrongLine(number, "price %.40q has more than %d decimals; round it", value, mostDecimals)
	}
	l.known, l.decimals = true, len(decimals)
	if l.digits, err = strconv.ParseInt(parts[1]+parts[2]+decimals, 10, 64); err != nil {
		return line{}, wrongLine(number, "price %.40q is too large", value)
	}
	return l, nil
}

// curveOf returns the curve of lines, with all prices in the unit of the one with the most decimals.
func curveOf(lines []line) (*Curve, error) {
	if len(lines) == 0 {
		return nil, fault.New(fault.Invalid, "there are no prices")
	}
	decimals := 0
	for _, l := range lines {
		decimals = max(decimals, l.decimals)
	}
	var steps []Step
	for i, l := range lines {
		if !l.known {
			continue
		}
		if i == len(lines)-1 {
			return nil, wrongLine(l.number, "is the last one and has a price; add a line with the time at which it ends and without a price")
		}
		small := func() bool { return -MostPrice <= l.digits && l.digits <= MostPrice }
		for missing := decimals - l.decimals; missing > 0 && small(); missing-- {
			l.digits *= 10
		}
		if !small() {
			return nil, wrongLine(l.number, "the price is larger than %d units of the last of %s; use a larger unit, or fewer decimals",
				int64(MostPrice), fault.Counted(decimals, "decimal"))
		}
		steps = append(steps, Step{span.Span{Start: l.start, End: lines[i+1].start}, l.digits})
	}
	return New(steps)
}
