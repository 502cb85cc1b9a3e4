// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

func TestTheHighestMicroversionThatBothSpeakIsSpoken(t *testing.T) {
	for name, tc := range map[string]struct{ document, most, want, wrong string }{
		"an older service": {document: usual, want: "2.95"},
		"a newer service":  {document: `{"version": {"version": "2.103", "min_version": "2.1"}}`, want: "2.100"},
		"as told":          {document: usual, most: "2.87", want: "2.87"},
		"all versions": {document: `{"versions": [{"id": "v2.0", "version": "", "min_version": ""},
			{"id": "v2.1", "version": "2.60", "min_version": "2.1"}]}`, want: "2.60"},
		"as Placement says it": {document: `{"versions": [{"id": "v1.0", "max_version": "2.70", "min_version": "2.0"}]}`, want: "2.70"},
		"one that is too old":  {document: `{"version": {"version": "2.52", "min_version": "2.1"}}`, wrong: "nova speaks microversions 2.1 to 2.52; Almanac needs one from 2.53 to 2.100"},
		"one that is too new":  {document: `{"version": {"version": "2.200", "min_version": "2.101"}}`, wrong: "Almanac needs one from 2.53 to 2.100"},
		"none at all":          {document: `{"version": {"version": "", "min_version": ""}}`, wrong: "lists no microversions"},
		"another service":      {document: `{}`, wrong: "lists no microversions; is it nova?"},
		"a page":               {document: `<html>`, wrong: "the answer of nova is invalid"},
		"no microversion":      {document: `{"version": {"version": "2.x"}}`, wrong: "the answer of nova is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, func(o *openstack.Options) { o.MaxMicroversion = tc.most }, status(http.StatusOK, `{}`))
			s.document = tc.document
			got, err := s.Microversion(t.Context())
			switch {
			case tc.wrong == "" && (err != nil || got.String() != tc.want):
				t.Errorf("got %v, %v; want %s", got, err, tc.want)
			case tc.wrong != "" && (!fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), tc.wrong)):
				t.Errorf("got %v, want %q", err, tc.wrong)
			}
		})
	}
}

func TestTheVersionsPartOfTheAddressIsFoundOrAdded(t *testing.T) {
	for _, end := range []string{"", "/", "/v2.1", "/v2.1/", "/v2.1/0a1b2c"} {
		s := newStand(t, func(o *openstack.Options) { o.Override = strings.TrimSuffix(o.Override, "/v2.1") + "/compute" + end }, status(http.StatusOK, `{}`))
		if err := s.get(t); err != nil || s.path != "/compute/v2.1/" {
			t.Errorf("%q: asked %s, %v", end, s.path, err)
		}
	}
}

func TestTheMicroversionGoesWithEachCall(t *testing.T) {
	var spoken []string
	s := newStand(t, nil, func(w http.ResponseWriter, r *http.Request) {
		spoken = append(spoken, r.Header.Get("OpenStack-API-Version"))
		_, _ = io.WriteString(w, `{}`)
	})
	var into map[string]any
	if err := s.GetAtMost(t.Context(), openstack.Microversion{Major: 2, Minor: 87}, "list", "things", &into); err != nil {
		t.Fatal(err)
	}
	if err := s.get(t); err != nil {
		t.Fatal(err)
	}
	if strings.Join(spoken, ", ") != "compute 2.87, compute 2.95" {
		t.Errorf("spoken: %v", spoken)
	}
}

func TestAServiceThatCameBackIsAskedForItsMicroversionAgain(t *testing.T) {
	var answer atomic.Value
	answer.Store(status(http.StatusOK, `{}`))
	s := newStand(t, nil, func(w http.ResponseWriter, r *http.Request) { answer.Load().(http.HandlerFunc)(w, r) })
	if err := s.get(t); err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string]http.HandlerFunc{
		"503": status(http.StatusServiceUnavailable, ""), "406": status(http.StatusNotAcceptable, ""),
		"a connection that is cut": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		s.document = usual
		answer.Store(wrong)
		if err := s.get(t); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: got %v", name, err)
		}
		s.document = strings.Replace(usual, "2.95", "2.99", 1)
		answer.Store(status(http.StatusOK, `{}`))
		if got, err := s.Microversion(t.Context()); err != nil || got.Minor != 99 {
			t.Errorf("after %s: %v, %v", name, got, err)
		}
	}
}

func TestTheHighestMicroversionIsThatOfTheServiceNow(t *testing.T) {
	s := newStand(t, func(o *openstack.Options) { o.MaxMicroversion = "2.87" }, status(http.StatusOK, `{}`))
	for _, minor := range []int{95, 104} {
		s.document = strings.Replace(usual, "2.95", fmt.Sprintf("2.%d", minor), 1)
		if got, err := s.Highest(t.Context()); err != nil || got != (openstack.Microversion{Major: 2, Minor: minor}) {
			t.Errorf("2.%d: %v, %v", minor, got, err)
		}
	}
	if got, err := s.Microversion(t.Context()); err != nil || got.Minor != 87 {
		t.Errorf("in use is %v, %v", got, err)
	}
}

func TestAReadIsTriedTwiceMoreAndAChangeNever(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		reads  int64
	}{
		"500": {status(http.StatusInternalServerError, ""), 1},
		"502": {status(http.StatusBadGateway, ""), 3},
		"503": {status(http.StatusServiceUnavailable, ""), 3},
		"504": {status(http.StatusGatewayTimeout, ""), 3},
		"404": {status(http.StatusNotFound, ""), 1},
		"a connection that is cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"things": `)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, 3},
	} {
		s := newStand(t, nil, tc.answer)
		if err := s.get(t); err == nil || s.asked.Load() != tc.reads || len(s.waits) != int(tc.reads)-1 {
			t.Errorf("%s: read %d times with %d waits, %v", name, s.asked.Load(), len(s.waits), err)
		}
		s.asked.Store(0)
		if err := s.post(t); err == nil || s.asked.Load() != 1 {
			t.Errorf("%s: changed %d times, %v", name, s.asked.Load(), err)
		}
	}
}

func TestWhatFailsIsAFaultThatNamesTheService(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		kind   fault.Kind
		inside string
	}{
		"400 of Nova":      {status(http.StatusBadRequest, `{"badRequest": {"code": 400, "message": "Invalid zone"}}`), fault.Invalid, "Invalid zone"},
		"401":              {status(http.StatusUnauthorized, ``), fault.Denied, "nova does not accept the token"},
		"403":              {status(http.StatusForbidden, `{"forbidden": {"message": "Policy"}}`), fault.Denied, "Policy"},
		"404":              {status(http.StatusNotFound, `{"itemNotFound": {"message": "no such thing"}}`), fault.NotFound, "no such thing"},
		"409 of Placement": {status(http.StatusConflict, `{"errors": [{"detail": " taken ", "code": "placement.concurrent_update"}]}`), fault.Conflict, "taken"},
		"409 of Ironic":    {status(http.StatusConflict, `{"error_message": {"faultcode": "Client", "faultstring": "it is locked"}}`), fault.Conflict, "it is locked"},
		"an older Ironic":  {status(http.StatusConflict, `{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"it is locked\"}"}`), fault.Conflict, "it is locked"},
		"429":              {status(http.StatusTooManyRequests, ``), fault.TooMany, "too many requests"},
		"500":              {status(http.StatusInternalServerError, `{"computeFault": {"message": "`+long+`"}}`), fault.Unavailable, "nova answered 500 to GET"},
		"a redirect":       {status(http.StatusFound, ``), fault.Unavailable, "nova answered 302"},
		"a page":           {status(http.StatusOK, `<html>`), fault.Unavailable, "the answer of nova is invalid"},
		"half a document":  {status(http.StatusOK, `{"things": [`), fault.Unavailable, "the answer of nova is invalid"},
		"two documents":    {status(http.StatusOK, `{} {}`), fault.Unavailable, "the answer of nova is invalid"},
		"no connection":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fault.Unavailable, "nova does not answer"},
		"what never ends": {func(w http.ResponseWriter, _ *http.Request) {
			for piece := strings.Repeat(" ", 1<<20); ; {
				if _, err := io.WriteString(w, piece); err != nil {
					return
				}
			}
		}, fault.Unavailable, "the answer is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			err := newStand(t, nil, tc.answer).get(t)
			if !fault.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.inside) || !strings.HasPrefix(err.Error(), "list the things: ") {
				t.Errorf("got %.300v", err)
			}
			if strings.Contains(err.Error(), "secret") || len(err.Error()) > 1000 {
				t.Errorf("the error reveals too much: %.1500v", err)
			}
		})
	}
}

func TestACallThatIsGivenUpHasNotTheAnswerToAnother(t *testing.T) {
	ctx, giveUp := context.WithCancelCause(t.Context())
	s := newStand(t, nil, func(_ http.ResponseWriter, r *http.Request) {
		giveUp(fault.New(fault.NotFound, "the answer to another call"))
		<-r.Context().Done()
	})
	var into map[string]any
	err := s.Get(ctx, "list the things", "things", &into)
	if !fault.Is(err, fault.Unavailable) || !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "another call") {
		t.Errorf("got %v", err)
	}
}

func TestAServiceThatHangsIsWaitedForOnlySoLong(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	var s *stand
	var err error
	// A busy machine may need longer to send the request.
	for limit := 100 * time.Millisecond; (s == nil || s.asked.Load() == 0) && limit < time.Minute; limit *= 4 {
		s = newStand(t, func(o *openstack.Options) { o.Timeout = limit }, hang)
		err = s.get(t)
	}
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "nova does not answer") || s.asked.Load() != 1 {
		t.Errorf("asked %d times, got %v", s.asked.Load(), err)
	}
}

func TestARefusedTokenIsReplacedOnceAndTheCallRepeated(t *testing.T) {
	var bodies []string
	s := newStand(t, nil, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.Header.Get("X-Auth-Token")+" "+string(body))
		if r.Header.Get("X-Auth-Token") == "secret-1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	if err := s.post(t); err != nil {
		t.Fatal(err)
	}
	if len(bodies) != 2 || bodies[0] != `secret-1 {"name":"x"}` || bodies[1] != `secret-2 {"name":"x"}` {
		t.Errorf("sent %q", bodies)
	}

	refusing := newStand(t, nil, status(http.StatusUnauthorized, ""))
	if err := refusing.get(t); !fault.Is(err, fault.Denied) || refusing.asked.Load() != 2 {
		t.Errorf("asked %d times, %v", refusing.asked.Load(), err)
	}
}

func TestACallOfACallerHasItsTokenAndNoOther(t *testing.T) {
	var tokens []string
	s := newStand(t, nil, func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("X-Auth-Token"))
		w.WriteHeader(http.StatusUnauthorized)
	})
	err := s.Get(openstack.As(t.Context(), "of the caller"), "look", "things", nil)
	if !fault.Is(err, fault.Denied) || !slices.Equal(tokens, []string{"of the caller"}) {
		t.Errorf("sent with %q, got %v", tokens, err)
	}
}

func TestWithoutATokenTheServiceIsNotAsked(t *testing.T) {
	s := newStand(t, nil, status(http.StatusOK, `{}`))
	s.session.err = &fault.Error{Kind: fault.Unavailable, Message: "no token from Keystone", RetryAfter: 7 * time.Second}
	err := s.get(t)
	if f := fault.Of(err); f.Kind != fault.Unavailable || f.RetryAfter != 7*time.Second || s.Calls() != 0 {
		t.Errorf("%d calls, got %v", s.Calls(), err)
	}
}

func TestACatalogWithoutTheServiceIsSaidSo(t *testing.T) {
	s := newStand(t, func(o *openstack.Options) { o.Override = "" }, status(http.StatusOK, `{}`))
	if err := s.get(t); !fault.Is(err, fault.Unavailable) || err.Error() != "list the things: there is no service compute in the catalog" {
		t.Errorf("got %v", err)
	}
}

func TestAtMostEightCallsAreUnderWayAtOnce(t *testing.T) {
	var now, most atomic.Int64
	full, release := make(chan struct{}), make(chan struct{})
	filled := sync.OnceFunc(func() { close(full) })
	s := newStand(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		if n == 8 {
			filled()
		}
		<-release
		_, _ = io.WriteString(w, `{}`)
	})
	if _, err := s.Microversion(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			if err := s.get(t); err != nil {
				t.Error(err)
			}
		})
	}
	<-full
	release <- struct{}{}
	close(release)
	all.Wait()
	if most.Load() != 8 || s.Calls() != 31 {
		t.Errorf("%d at once, %d calls", most.Load(), s.Calls())
	}
}

func TestOptionsThatCannotWorkAreNamed(t *testing.T) {
	kind := openstack.Kind{Name: "nova", Least: openstack.Microversion{Major: 2, Minor: 53}, Most: openstack.Microversion{Major: 2, Minor: 100}}
	for field, o := range map[string]openstack.Options{
		"cafile": {CAFile: "no/such/file.pem"}, "max_microversion": {MaxMicroversion: "2.52"},
	} {
		if _, err := openstack.NewService(&session{}, kind, o); fault.Of(err) == nil || fault.Of(err).Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
}
