package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// format is the flag --format.
type format string

var formats = []string{"table", "json", "yaml", "csv", "value"}

func (f *format) Set(text string) error {
	if !slices.Contains(formats, text) {
		return errors.New(unknown("format", text, formats))
	}
	*f = format(text)
	return nil
}

func (f *format) String() string { return string(*f) }

func (f *format) Type() string { return "format" }

// column is a column in a list of T, and a field where one T is shown.
type column[T any] struct {
	header string
	value  func(T) any
	in     place
}

// place is where a column appears without being asked for. All appear where one
// T is shown.
type place int

const (
	inLists     place = iota
	inLongLists       // with --long
	inShows           // never in lists
)

// printer prints T in the format and the columns that were asked for.
type printer[T any] struct {
	out     io.Writer
	format  format
	columns []column[T]
	chosen  bool // by --column
}

// newPrinter takes those of all columns that belong to a place and those before
// it, or those named by --column. A name that is none of all is an Invalid fault.
func newPrinter[T any](p *process, all []column[T], in place) (printer[T], error) {
	w := printer[T]{out: p.stdout, format: p.format, chosen: len(p.columns) > 0}
	var known []string
	for _, c := range all {
		known = append(known, c.header)
		if !w.chosen && c.in <= in {
			w.columns = append(w.columns, c)
		}
	}
	for _, name := range p.columns {
		i := slices.IndexFunc(known, func(header string) bool { return strings.EqualFold(header, name) })
		if i < 0 {
			return w, fault.Field("--column", "%s", unknown("column", name, known))
		}
		w.columns = append(w.columns, all[i])
	}
	return w, nil
}

// list prints items; answer is the same as the API has it.
func (w printer[T]) list(items []T, answer any) error {
	switch w.format {
	case "json", "yaml":
		if w.chosen {
			rows := make([]map[string]any, len(items))
			for i, item := range items {
				rows[i] = w.object(item)
			}
			answer = rows
		}
		return w.structured(answer)
	case "csv", "value":
		return w.lines(items)
	default:
		t := newTable(w.headers())
		for _, item := range items {
			t.AppendRow(tableRow(w.cells(item, true)))
		}
		return w.print(t.Render())
	}
}

// one prints an item; answer is the same as the API has it.
func (w printer[T]) one(item T, answer any) error {
	switch w.format {
	case "json", "yaml":
		if w.chosen {
			answer = w.object(item)
		}
		return w.structured(answer)
	case "csv":
		return w.lines([]T{item})
	case "value":
		return w.print(strings.Join(w.cells(item, false), "\n"))
	default:
		t := newTable([]string{"Field", "Value"})
		for i, cell := range w.cells(item, true) {
			t.AppendRow(table.Row{w.columns[i].header, cell})
		}
		return w.print(t.Render())
	}
}

// object gives the item's values under the headers of their columns.
func (w printer[T]) object(item T) map[string]any {
	values := make(map[string]any, len(w.columns))
	for _, c := range w.columns {
		values[c.header] = c.value(item)
	}
	return values
}

func (w printer[T]) structured(answer any) error {
	encoded, err := indent(answer)
	if err != nil {
		return err
	}
	if w.format == "yaml" {
		if encoded, err = yaml.JSONToYAML(encoded); err != nil {
			return fmt.Errorf("write YAML: %w", err)
		}
	}
	return w.print(strings.TrimSuffix(string(encoded), "\n"))
}

// lines prints one line for each item.
func (w printer[T]) lines(items []T) error {
	if w.format == "value" {
		for _, item := range items {
			if err := w.print(strings.Join(w.cells(item, false), " ")); err != nil {
				return err
			}
		}
		return nil
	}
	out := csv.NewWriter(w.out)
	records := [][]string{w.headers()}
	for _, item := range items {
		records = append(records, w.cells(item, false))
	}
	return out.WriteAll(records)
}

func (w printer[T]) headers() []string {
	headers := make([]string, len(w.columns))
	for i, c := range w.columns {
		headers[i] = c.header
	}
	return headers
}

// cells gives the item's values as texts, for a table or for lines.
func (w printer[T]) cells(item T, inTable bool) []string {
	cells := make([]string, len(w.columns))
	for i, c := range w.columns {
		cells[i] = cell(c.value(item), inTable)
	}
	return cells
}

func (w printer[T]) print(text string) error {
	_, err := fmt.Fprintln(w.out, text)
	return err
}

// newTable gives a table in the style of the OpenStack clients.
func newTable(headers []string) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.AppendHeader(tableRow(headers))
	return t
}

func tableRow(cells []string) table.Row {
	r := make(table.Row, len(cells))
	for i, c := range cells {
		r[i] = c
	}
	return r
}
