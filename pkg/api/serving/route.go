// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
)

// Route is a row of the table of routes. Get, Head, Post, Put, Patch and Delete return one with all its columns, so that
// the compiler refuses one that lacks a column; no column may have its zero value.
type Route struct {
	Method, Path string
	Who          Access
	Turn         Turn
	Largest      Length
	Keeps        Cache
	// Steps answer the request, one after the other, until one of them has refused it.
	Steps []Step
}

// Get returns a row for GET.
func Get(path string, who Access, turn Turn, largest Length, keeps Cache, steps ...Step) Route {
	return Route{http.MethodGet, path, who, turn, largest, keeps, steps}
}

// Head returns a row for HEAD. A path without one answers HEAD as GET.
func Head(path string, who Access, turn Turn, largest Length, keeps Cache, steps ...Step) Route {
	return Route{http.MethodHead, path, who, turn, largest, keeps, steps}
}

// Post returns a row for POST.
func Post(path string, who Access, turn Turn, largest Length, keeps Cache, steps ...Step) Route {
	return Route{http.MethodPost, path, who, turn, largest, keeps, steps}
}

// Put returns a row for PUT.
func Put(path string, who Access, turn Turn, largest Length, keeps Cache, steps ...Step) Route {
	return Route{http.MethodPut, path, who, turn, largest, keeps, steps}
}

// Patch returns a row for PATCH.
func Patch(path string, who Access, turn Turn, largest Length, keeps Cache, steps ...Step) Route {
	return Route{http.MethodPatch, path, who, turn, largest, keeps, steps}
}

// Delete returns a row for DELETE.
func Delete(path string, who Access, turn Turn, largest Length, keeps Cache, steps ...Step) Route {
	return Route{http.MethodDelete, path, who, turn, largest, keeps, steps}
}

// Changes reports whether the call changes or removes what is there already.
func (r Route) Changes() bool {
	return r.Method == http.MethodPatch || r.Method == http.MethodPut || r.Method == http.MethodDelete
}

// Whole reports whether no column is empty.
func (r Route) Whole() bool {
	return r.Method != "" && r.Path != "" && r.Who.Caller != "" && r.Turn != "" && r.Largest > 0 && r.Keeps.Control != "" && len(r.Steps) > 0
}
