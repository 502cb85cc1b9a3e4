// SPDX-License-Identifier: Apache-2.0

package nova

import (
	"net/url"
	"strconv"
)

const (
	// pageSize is Nova's default page limit ([api] max_limit).
	pageSize = 1000
	// mostPages bounds a list: nobody has a million instances in one Nova, and a proxy may
	// answer every request with the same page.
	mostPages = 1000
)

// link is an entry of "servers_links" and similar lists; the relation next means that there is
// another page.
type link struct {
	Rel string `json:"rel"`
}

// hasNext reports whether one of the links leads to the next page.
func hasNext(links []link) bool {
	for _, l := range links {
		if l.Rel == "next" {
			return true
		}
	}
	return false
}

// paged reads the pages of a list. read gets the path of a page, and returns the id of its last
// entry and whether there is another page.
func (c *Client) paged(doing, path string, query url.Values, read func(path string) (last string, more bool, err error)) error {
	query.Set("limit", strconv.Itoa(pageSize))
	for range mostPages {
		last, more, err := read(path + "?" + query.Encode())
		if err != nil || !more {
			return err
		}
		if last == "" || last == query.Get("marker") {
			break
		}
		query.Set("marker", last)
	}
	return c.service.Malformed(doing, "its list does not end")
}
