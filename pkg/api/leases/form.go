// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// blazarError is the body of an error in Blazar's form, which its clients read, with Almanac's own
// error and refusal beside it. error_name is the number again, as in Blazar (blazar/api/v1/utils.py).
type blazarError struct {
	v1.ErrorAnswer
	Code    int    `json:"error_code"`
	Message string `json:"error_message"`
	Name    int    `json:"error_name"`
}

// contentType names no charset, since clients of Blazar compare it as a whole.
const contentType = "application/json"

// Form returns the form of Blazar's answers.
func Form() serving.Form {
	return serving.Form{Has: InForm, ContentType: contentType, Refusal: refusalForm, Error: errorForm}
}

// paths are the first parts of the paths that have Blazar's form, below /v1.
// Clients ask for the last two too, which Almanac does not serve.
var paths = []string{"/leases", "/os-hosts", "/floatingips", "/networks", "/devices"}

// InForm reports whether the answer to a request must have Blazar's form. That is so without
// /v1 too: a client asks there if the URL in the catalog lacks it, and shows the error.
func InForm(r *http.Request) bool {
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	return slices.ContainsFunc(paths, func(root string) bool {
		rest, below := strings.CutPrefix(path, root)
		return below && (rest == "" || rest[0] == '/')
	})
}

// errorForm returns the body of an error.
func errorForm(status int, answer v1.ErrorAnswer) any {
	text := answer.Error.Message
	if field := answer.Error.Field; field != "" && !wholeSentence(text) {
		text = field + ": " + text
	}
	return blazarError{answer, status, text, status}
}

// wholeSentence reports whether a message does not continue the name of a field. Those with Blazar's
// texts do not.
func wholeSentence(message string) bool {
	first, _ := utf8.DecodeRuneInString(message)
	return unicode.IsUpper(first)
}

// queryFieldsKey is the key of the words for the fields with which a request selects hosts.
const queryFieldsKey = "query fields"

// refusalForm returns how a refusal is answered. Clients of Blazar take 400 as final, while some
// repeat a request for ever after 409. An exceeded limit on the duration is 403 in Blazar.
func refusalForm(c *serving.Call, r *reservation.Refusal) serving.RefusalForm {
	form := serving.RefusalForm{Status: http.StatusBadRequest, Text: blazar.Refused(r, c.GetString(queryFieldsKey)), EndField: "end_date"}
	switch {
	case extended(c):
		form.Status = http.StatusConflict
	case r.Constraint == reservation.MaxDuration:
		form.Status = http.StatusForbidden
	}
	return form
}

// leaseForm returns the function that returns a lease for an answer.
func leaseForm(extended bool) func(l *reservation.LeaseRecord, now span.Instant) blazar.Lease {
	if extended {
		return blazar.ExtendedLeaseOf
	}
	return blazar.LeaseOf
}
