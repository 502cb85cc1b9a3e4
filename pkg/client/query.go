package client

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

func setFlag(query url.Values, name string, value bool) {
	if value {
		query.Set(name, "true")
	}
}

func setNumber(query url.Values, name string, n int) {
	if n != 0 {
		query.Set(name, strconv.Itoa(n))
	}
}

func setTime(query url.Values, name string, t time.Time) {
	if !t.IsZero() {
		query.Set(name, t.UTC().Format(time.RFC3339))
	}
}

func dryRun() url.Values { return url.Values{"dry_run": {"true"}} }

// pages returns the elements of a list. It fetches a page when its first element is needed,
// and ends after an error. read returns the elements of a page, and the marker of the next.
func pages[P, T any](
	ctx context.Context, c *Client, path string, query url.Values, size int, read func(page P) (elements []T, next string),
) iter.Seq2[T, error] {
	return pagesBy(ctx, c, "marker", path, query, size, read)
}

// pagesBy is pages for a list that continues at another parameter of the query than marker.
func pagesBy[P, T any](
	ctx context.Context, c *Client, marker, path string, query url.Values, size int, read func(page P) (elements []T, next string),
) iter.Seq2[T, error] {
	setNumber(query, "limit", size)
	return func(yield func(T, error) bool) {
		query := maps.Clone(query)
		for {
			page, err := answer[P](ctx, c, call{method: http.MethodGet, path: path, query: query})
			elements, next := read(page)
			if err == nil && next != "" && next == query.Get(marker) {
				err = fmt.Errorf("the page after %s begins with itself", next)
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, element := range elements {
				if !yield(element, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			query.Set(marker, next)
		}
	}
}
