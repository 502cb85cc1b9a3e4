package client

import (
	"fmt"
	"iter"
	"maps"
	"net/url"
	"strconv"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// member gives the path of one member of a collection. A name that would make it
// the path of something else is an Invalid fault on field.
func member(collection, field, name string) (string, error) {
	switch name {
	case "":
		return "", fault.Field(field, "must not be empty")
	case ".", "..":
		return "", fault.Field(field, "must not be %q", name)
	}
	return collection + url.PathEscape(name), nil
}

func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

func setTime(query url.Values, name string, t time.Time) {
	if !t.IsZero() {
		query.Set(name, t.UTC().Format(time.RFC3339))
	}
}

// pages gives the elements of all pages of the list that query asks for. fetch
// gets one page, and the marker of the next.
func pages[T any](query url.Values, size int, fetch func(url.Values) ([]T, string, error)) iter.Seq2[T, error] {
	if size > 0 {
		query.Set("limit", strconv.Itoa(size))
	}
	return func(yield func(T, error) bool) {
		query := maps.Clone(query)
		for {
			page, next, err := fetch(query)
			if err == nil && next != "" && next == query.Get("marker") {
				err = fmt.Errorf("the page after %s begins with itself", next)
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, element := range page {
				if !yield(element, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			query.Set("marker", next)
		}
	}
}
