// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// documents are the files of the contract.
var documents = []string{"openapi.yaml", "openapi-blazar.yaml"}

// contract is what the tests check every request and answer against: openapi.yaml, and the document
// of the calls in Blazar's form.
type contract struct {
	document, blazar *openapi3.T
	routers          []routers.Router
}

var readContract = sync.OnceValues(func() (*contract, error) {
	for _, text := range []string{"text/calendar", "text/event-stream"} {
		openapi3filter.RegisterBodyDecoder(text, openapi3filter.RegisteredBodyDecoder("text/plain"))
	}
	// RFC 3339 allows t and z.
	openapi3.DefineStringFormatValidator("date-time", openapi3.NewRegexpFormatValidator("(?i)"+openapi3.FormatOfStringDateTime))
	c := &contract{}
	for i, place := range []**openapi3.T{&c.document, &c.blazar} {
		raw, err := os.ReadFile(documents[i])
		if err != nil {
			return nil, err
		}
		document, err := openapi3.NewLoader().LoadFromData(raw)
		if err != nil {
			return nil, err
		}
		closeObjects(document)
		router, err := gorillamux.NewRouter(document)
		if err != nil {
			return nil, err
		}
		*place, c.routers = document, append(c.routers, router)
	}
	return c, nil
})

// findRoute returns the call of a request.
func (c *contract) findRoute(request *http.Request) (route *routers.Route, params map[string]string, err error) {
	for _, router := range c.routers {
		if route, params, err = router.FindRoute(request); err == nil {
			break
		}
	}
	return route, params, err
}

// closeObjects forbids the objects of answers all fields that the document does not list. Clients
// get no such rule: a later version may add fields.
func closeObjects(document *openapi3.T) {
	for _, schema := range document.Components.Schemas {
		closed := func(_ string, s *openapi3.SchemaRef) error {
			if s.Value != nil && s.Value.Type.Is("object") && s.Value.AdditionalProperties.Schema == nil {
				s.Value.AdditionalProperties.Has = new(false)
			}
			return nil
		}
		if err := schema.WalkSubtree(closed); err != nil {
			panic(err)
		}
	}
}

func openContract(t testing.TB) *contract {
	t.Helper()
	c, err := readContract()
	if err != nil {
		t.Fatalf("read the document: %v", err)
	}
	return c
}

// kinds lists the kinds of error of each status.
var kinds = map[int][]string{
	http.StatusBadRequest:            {"invalid", "refused"},
	http.StatusUnauthorized:          {"unauthorized"},
	http.StatusForbidden:             {"denied", "refused"},
	http.StatusNotFound:              {"not_found"},
	http.StatusMethodNotAllowed:      {"invalid"},
	http.StatusNotAcceptable:         {"invalid"},
	http.StatusConflict:              {"refused", "conflict"},
	http.StatusPreconditionFailed:    {"precondition"},
	http.StatusRequestEntityTooLarge: {"too_large"},
	http.StatusUnprocessableEntity:   {"unprocessable"},
	http.StatusTooManyRequests:       {"too_many"},
	http.StatusInternalServerError:   {"internal"},
	http.StatusServiceUnavailable:    {"unavailable"},
}

// hold checks an exchange against the document and reports whether the document allows the
// request. The document must allow what the server accepts and must list what the server answers.
func (c *contract) hold(t reporter, request *http.Request, body string, a answer) (allowed bool) {
	t.Helper()
	request = request.Clone(t.Context())
	request.URL.Path = "/" + strings.Trim(request.URL.Path, "/")
	request.URL.RawPath = ""
	request.Body = io.NopCloser(strings.NewReader(body))
	route, params, err := c.findRoute(request)
	if err != nil {
		c.holdOutside(t, request, a)
		return false
	}
	input := &openapi3filter.RequestValidationInput{
		Request: request, Route: route, PathParams: params,
		Options: &openapi3filter.Options{SkipSettingDefaults: true, AuthenticationFunc: hasToken},
	}
	refused := openapi3filter.ValidateRequest(t.Context(), input)
	if accepted := a.status != 400 && a.status != 413 && a.status != 500; accepted && refused != nil {
		t.Errorf("%s %s is answered with %d, but the document does not allow it: %v\n%s", request.Method, request.URL, a.status, refused, body)
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		t.Errorf("%s %s: the document does not have this answer: %v\n%d %s", request.Method, request.URL, err, a.status, a.body)
	}
	return refused == nil
}

// hasToken returns an error unless the request has what the security scheme requires.
func hasToken(_ context.Context, input *openapi3filter.AuthenticationInput) error {
	if name := input.SecurityScheme.Name; input.RequestValidationInput.Request.Header.Get(name) == "" {
		return fmt.Errorf("there is no %s", name)
	}
	return nil
}

// holdOutside checks the answer to a request that is not in the document.
func (c *contract) holdOutside(t reporter, request *http.Request, a answer) {
	t.Helper()
	if a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed {
		t.Errorf("%s %s is not in the document, but answered with %d", request.Method, request.URL, a.status)
		return
	}
	var value any
	if err := json.Unmarshal(a.body, &value); err != nil {
		t.Errorf("the answer is not JSON: %v", err)
	}
	schema := c.document.Components.Schemas["ErrorAnswer"].Value
	if _, known := value.(map[string]any)["error_message"]; known {
		schema = c.blazar.Components.Schemas["BlazarError"].Value
	}
	if err := schema.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
		t.Errorf("the error has another form: %v", err)
	}
}

// routes lists the calls of the document as "METHOD /path".
func (c *contract) routes() []string {
	var list []string
	for _, document := range []*openapi3.T{c.document, c.blazar} {
		for path, item := range document.Paths.Map() {
			for method := range item.Operations() {
				list = append(list, fmt.Sprintf("%s %s", method, path))
			}
		}
	}
	return list
}
