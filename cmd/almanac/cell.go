package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

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

// plain quotes a text that could move the cursor of a terminal.
func plain(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
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
