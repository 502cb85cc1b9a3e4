// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// format is the flag --format.
type format string

var formats = []string{"table", "json", "yaml", "csv", "value", "shell", "api"}

func (f *format) Set(text string) error {
	if !slices.Contains(formats, text) {
		return errors.New(unknown("format", text, formats))
	}
	*f = format(text)
	return nil
}

func (f *format) String() string { return string(*f) }

func (f *format) Type() string { return "format" }

// field is one value of a resource: a cell in a list, or a line if one resource is shown.
type field struct {
	header string
	value  any
	in     columnPlace
}

// columnPlace is the least detailed output in which a field appears without --column. If one resource is
// shown, all of its fields appear.
type columnPlace int

const (
	inLists     columnPlace = iota
	inLongLists             // with --long
	inShows                 // never in lists
)

// columns returns the fields of a resource in the order in which they are printed. For the zero
// value of the resource it returns the same headers.
type columns[T any] func(T) []field

// printer prints resources in the format and the columns of the command line.
type printer[T any] struct {
	out      io.Writer
	format   format
	columns  columns[T]
	headers  []string
	selected []int // indexes of the headers among the fields
	chosen   bool  // by --column
}

// newPrinter selects the fields of a place and of the places before it, or those that
// --column names. An unknown name is an Invalid fault.
func newPrinter[T any](p *process, all columns[T], in columnPlace) (printer[T], error) {
	w := printer[T]{out: p.stdout, format: p.format, columns: all, chosen: len(p.columns) > 0}
	var none T
	var known []string
	for i, f := range all(none) {
		known = append(known, f.header)
		if !w.chosen && f.in <= in {
			w.selected = append(w.selected, i)
		}
	}
	for _, name := range p.columns {
		i := slices.IndexFunc(known, func(header string) bool { return strings.EqualFold(header, name) })
		if i < 0 {
			return w, fault.Field("--column", "%s", unknown("column", name, known))
		}
		w.selected = append(w.selected, i)
	}
	for _, i := range w.selected {
		w.headers = append(w.headers, known[i])
	}
	return w, nil
}

// list prints items. answer is the API's whole response that contains them, for the format api.
func (w printer[T]) list(items []T, answer any) error {
	switch w.format {
	case "json", "yaml":
		rows := make([]map[string]any, len(items))
		for i, item := range items {
			rows[i] = w.object(item)
		}
		return w.structured(rows)
	case "api":
		return w.structured(answer)
	case "csv", "value", "shell":
		return w.lines(items)
	default:
		t := newTable(w.headers)
		for _, item := range items {
			t.AppendRow(tableRow(w.cells(item, true)))
		}
		return w.print(t.Render())
	}
}

// one prints an item. answer is the API's whole response that contains the item: JSON and YAML
// print it unless --column selects fields.
func (w printer[T]) one(item T, answer any) error {
	switch w.format {
	case "json", "yaml":
		if w.chosen {
			answer = w.object(item)
		}
		return w.structured(answer)
	case "api":
		return w.structured(answer)
	case "shell":
		return w.print(strings.Join(w.assignments(item), "\n"))
	case "csv":
		return w.lines([]T{item})
	case "value":
		return w.print(strings.Join(w.cells(item, false), "\n"))
	default:
		t := newTable([]string{"Field", "Value"})
		for i, cell := range w.cells(item, true) {
			t.AppendRow(table.Row{w.headers[i], cell})
		}
		return w.print(t.Render())
	}
}

// object returns the selected values of an item, by their headers.
func (w printer[T]) object(item T) map[string]any {
	fields, values := w.columns(item), make(map[string]any, len(w.selected))
	for i, header := range w.headers {
		values[header] = fields[w.selected[i]].value
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
	if w.format != "csv" {
		for _, item := range items {
			cells := w.cells(item, false)
			if w.format == "shell" {
				cells = w.assignments(item)
			}
			if err := w.print(strings.Join(cells, " ")); err != nil {
				return err
			}
		}
		return nil
	}
	out := csv.NewWriter(w.out)
	records := [][]string{w.headers}
	for _, item := range items {
		records = append(records, w.cells(item, false))
	}
	return out.WriteAll(records)
}

// cells returns the selected values of an item as texts, for a table or for lines.
func (w printer[T]) cells(item T, inTable bool) []string {
	fields, cells := w.columns(item), make([]string, len(w.selected))
	for i, at := range w.selected {
		cells[i] = cell(fields[at].value, inTable)
	}
	return cells
}

// assignments returns the selected values of an item as assignments of a shell, which can evaluate
// them whatever they contain: host_properties='["=","$gpu","a100"]'.
func (w printer[T]) assignments(item T) []string {
	list := w.cells(item, false)
	for i, value := range list {
		list[i] = strings.ReplaceAll(strings.ToLower(w.headers[i]), " ", "_") + "=" + quote(value)
	}
	return list
}

func (w printer[T]) print(text string) error {
	_, err := fmt.Fprintln(w.out, text)
	return err
}

// newTable returns a table in the style of the OpenStack clients.
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

// lines is a value that has several lines in a table.
type lines []string

// prose is a text of any length. A table wraps it at proseWidth.
type prose string

const proseWidth = 60

// sample is a list. A table shows its first few elements.
type sample []any

const sampleShown = 8

// cell formats a value of the API, for a table or elsewhere.
func cell(value any, inTable bool) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return plain(v)
	case prose:
		if inTable {
			return text.WrapSoft(plain(string(v)), proseWidth)
		}
		return plain(string(v))
	case lines:
		separator := "; "
		if inTable {
			separator = "\n"
		}
		return strings.Join(each(v, plain), separator)
	case sample:
		if more := len(v) - sampleShown; inTable && more > 0 {
			return fmt.Sprintf("%s and %d more", cell([]any(v[:sampleShown]), inTable), more)
		}
		return cell([]any(v), inTable)
	case []string:
		return strings.Join(each(v, plain), ", ")
	case []any:
		return strings.Join(each(v, func(e any) string { return cell(e, inTable) }), ", ")
	case map[string]any:
		return strings.Join(each(slices.Sorted(maps.Keys(v)), func(name string) string {
			return plain(name) + "=" + cell(v[name], inTable)
		}), ", ")
	case map[string]int:
		return strings.Join(each(slices.Sorted(maps.Keys(v)), func(name string) string {
			return plain(name) + "=" + strconv.Itoa(v[name])
		}), ", ")
	case time.Time:
		return stamp(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case v1.Resources:
		return resources(v)
	case json.RawMessage:
		return plain(compact(v))
	}
	if p := reflect.ValueOf(value); p.Kind() != reflect.Pointer {
		return fmt.Sprint(value)
	} else if !p.IsNil() {
		return cell(p.Elem().Interface(), inTable)
	}
	return ""
}

// compact formats JSON in one line and does not escape < and >.
func compact(raw json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if decoder.Decode(&value) != nil || encoder.Encode(value) != nil {
		return string(raw)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func resources(r v1.Resources) string {
	parts := []string{
		fmt.Sprintf("%d vcpus", r.VCPUs), fmt.Sprintf("%d MB", r.MemoryMB), fmt.Sprintf("%d GB", r.DiskGB),
	}
	for _, class := range slices.Sorted(maps.Keys(r.Custom)) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Custom[class], class))
	}
	return strings.Join(parts, ", ")
}

// plain quotes a text that could move the cursor of a terminal, end a line or turn the direction of
// what follows. All other characters stay, such as the wide blank of Chinese and Japanese and what
// joins the letters of Persian.
func plain(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) }) {
		return strconv.Quote(text)
	}
	return text
}

func each[T any](values []T, write func(T) string) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = write(v)
	}
	return texts
}
