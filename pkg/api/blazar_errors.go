// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/blazar"
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

const blazarContentType = "application/json"

// send writes value as JSON. Clients of Blazar compare the whole Content-Type, so it has no charset
// in Blazar's form.
func send(c *gin.Context, status int, value any) {
	if inBlazarsForm(c) {
		c.Header("Content-Type", blazarContentType)
	}
	c.PureJSON(status, value)
}

// sendError writes an error and ends the request.
func sendError(c *gin.Context, status int, answer v1.ErrorAnswer) {
	c.Abort()
	if !inBlazarsForm(c) {
		send(c, status, answer)
		return
	}
	text := answer.Error.Message
	if field := answer.Error.Field; field != "" && !wholeSentence(text) {
		text = field + ": " + text
	}
	send(c, status, blazarError{answer, status, text, status})
}

// wholeSentence reports whether a message does not continue the name of a field. Those with Blazar's
// texts do not.
func wholeSentence(message string) bool {
	first, _ := utf8.DecodeRuneInString(message)
	return unicode.IsUpper(first)
}

// refusedStatus returns the status of a refusal. Clients of Blazar take 400 as final, while some
// repeat a request for ever after 409. An exceeded limit on the duration is 403 in Blazar.
func refusedStatus(c *gin.Context, r *reservation.Refusal) int {
	switch {
	case !inBlazarsForm(c) || extended(c):
		return http.StatusConflict
	case r.Constraint == reservation.MaxDuration:
		return http.StatusForbidden
	}
	return http.StatusBadRequest
}

// queryFieldsKey is the key of the words for the fields with which a request selects hosts.
const queryFieldsKey = "query fields"

// refusedText returns the sentence of a refusal.
func refusedText(c *gin.Context, r *reservation.Refusal) string {
	if inBlazarsForm(c) {
		return blazar.Refused(r, c.GetString(queryFieldsKey))
	}
	return r.Message
}
