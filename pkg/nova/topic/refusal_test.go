// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// checkRefusal fails unless err is this exception with this sentence and mentions no other
// projects, machines or services.
func checkRefusal(t *testing.T, err error, class, module, sentence string) {
	t.Helper()
	remote, is := errors.AsType[*oslo.RemoteError](err)
	if !is || remote.Class != class || remote.Module != module || !strings.Contains(remote.Message, sentence) {
		t.Fatalf("the caller gets %v, want %s.%s with %q", err, module, class, sentence)
	}
	for _, secret := range []string{"somebody", "10.1.2.3", "token", "password"} {
		if strings.Contains(remote.Message, secret) {
			t.Errorf("the tenant reads %q", remote.Message)
		}
	}
}

const (
	novaException = "nova.exception"
	dispatcher    = "oslo_messaging.rpc.dispatcher"
)

func TestARequestThatCannotBeServedGetsNovasNoValidHost(t *testing.T) {
	object := func(name, version string) map[string]any {
		return map[string]any{"nova_object.name": name, "nova_object.namespace": "nova", "nova_object.version": version, "nova_object.data": fields{}}
	}
	three := args(t, hint("shared"), nil)
	three["instance_uuids"] = []string{"i1", "i2", "i3"}
	for name, tc := range map[string]struct {
		args map[string]any
		want string
	}{
		"no arguments":              {map[string]any{}, "has no spec_obj"},
		"no RequestSpec":            {map[string]any{"spec_obj": nil}, "spec_obj"},
		"a spec of another object":  {map[string]any{"spec_obj": object("Instance", "1.14")}, "RequestSpec"},
		"a spec of version 2.0":     {map[string]any{"spec_obj": object("RequestSpec", "2.0")}, "RequestSpec"},
		"a spec of nothing":         {map[string]any{"spec_obj": object("RequestSpec", "1.14")}, "cannot be read"},
		"a spec that is a list":     {map[string]any{"spec_obj": []int{1}}, "cannot be read"},
		"instances that are none":   {map[string]any{"spec_obj": object("RequestSpec", "1.14"), "instance_uuids": 5}, "cannot be read"},
		"no project":                {args(t, fields{"project_id": nil}, nil), "there is no project"},
		"no flavor":                 {args(t, fields{"flavor": nil}, nil), "flavor"},
		"hints of numbers":          {args(t, fields{"scheduler_hints": 5}, nil), "scheduler_hints"},
		"a hint that is no id":      {args(t, hint("' OR 1=1 --"), nil), "must be the id of a reservation"},
		"an endless hint":           {args(t, hint(strings.Repeat("a", 1<<20)), nil), "must be the id of a reservation"},
		"no hint":                   {args(t, hint(), nil), "must name one reservation"},
		"two hints, none usable":    {args(t, hint("foreign", "later"), nil), "has no reservation foreign, or it is over; nor"},
		"an unknown reservation":    {args(t, hint("unknown"), nil), "The project has no reservation unknown, or it is over."},
		"a foreign reservation":     {args(t, hint("foreign"), nil), "The project has no reservation foreign, or it is over."},
		"one that lies ahead":       {args(t, hint("later"), nil), "Reservation later has not started: it is pending"},
		"one that starts":           {args(t, hint("starting"), nil), "Reservation starting has not started"},
		"one that ends":             {args(t, hint("ending"), nil), "Reservation ending is ending"},
		"one that is over":          {args(t, hint("overdue"), nil), "Reservation overdue runs from"},
		"more than is reserved":     {three, "Reservation shared has 2 instances, 3 are requested."},
		"a larger flavor":           {args(t, hint("shared"), map[string]string{"resources:VCPU": "2"}), "has 1 VCPU for each instance"},
		"what cannot be judged":     {args(t, nil, map[string]string{"hw:numa_nodes": "2"}), "cannot be judged without a nova-scheduler"},
		"another flavor's":          {args(t, hint("own"), map[string]string{"almanac:reservation": "other"}), "another reservation than the flavor"},
		"an unjudged one, reserved": {args(t, hint("foreign"), map[string]string{"hw:numa_nodes": "2"}), "has no reservation foreign"},
	} {
		t.Run(name, func(t *testing.T) {
			b := serve(t, topic.Options{Placer: placer{}})
			_, err := b.ask(t, tc.args)
			checkRefusal(t, err, "NoValidHost", novaException, tc.want)
			remote, _ := errors.AsType[*oslo.RemoteError](err)
			if !strings.HasPrefix(remote.Message, "No valid host was found. ") || !strings.HasSuffix(remote.Message, ".") || len(remote.Message) > 1000 {
				t.Errorf("the tenant reads %.2000q", remote.Message)
			}
			if _, err := b.ask(t, args(t, nil, nil)); err != nil {
				t.Errorf("the next request gets %v", err)
			}
		})
	}
}

func TestFaultsOfServicesBecomeNovasExceptions(t *testing.T) {
	nova := &oslo.RemoteError{Class: "RequestFilterFailed", Module: novaException, Message: "Scheduling failed", Traceback: []string{"line"}}
	away := func(json.RawMessage) (json.RawMessage, error) { return nil, noAnswer }
	for name, tc := range map[string]struct {
		o     topic.Options
		class string
		want  string
	}{
		"no place":           {topic.Options{Placer: placer{fault.New(fault.Conflict, "there is no room for all of them")}}, "NoValidHost", "There is no room for all of them."},
		"Placement away":     {topic.Options{Placer: placer{fault.New(fault.Unavailable, "Placement did not grant it in time; try again later")}}, "NoValidHost", "did not grant it in time; try again later."},
		"Placement puzzled":  {topic.Options{Placer: placer{fault.New(fault.Invalid, "10.1.2.3 answers 400: a token of somebody")}}, "NoValidHost", "ask the operator"},
		"Almanac puzzled":    {topic.Options{Placer: placer{errors.New("a password of somebody")}}, "NoValidHost", "ask the operator"},
		"nobody behind":      {topic.Options{Behind: &behind{answer: away}}, "NoValidHost", "The scheduler does not answer; try again later."},
		"an exception there": {topic.Options{Behind: &behind{answer: func(json.RawMessage) (json.RawMessage, error) { return nil, nova }}}, "RequestFilterFailed", "Scheduling failed"},
		"a fault on the way": {topic.Options{Behind: &behind{answer: func(json.RawMessage) (json.RawMessage, error) { return nil, errors.New("10.1.2.3") }}}, "NoValidHost", "ask the operator"},
		"no states yet":      {topic.Options{Placer: placer{}, States: func() *inventory.States { return nil }}, "NoValidHost", "has not read the hosts of the cloud yet"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, tc.o).ask(t, args(t, nil, nil))
			checkRefusal(t, err, tc.class, novaException, tc.want)
		})
	}
}

func TestEveryAnswerIsMeasured(t *testing.T) {
	type answer struct {
		took   time.Duration
		placed bool
	}
	for name, tc := range map[string]struct {
		o    topic.Options
		args map[string]any
		want answer
	}{
		"a place":             {topic.Options{Placer: placer{}}, args(t, nil, nil), answer{time.Second, true}},
		"no place":            {topic.Options{Placer: placer{fault.New(fault.Conflict, "there is no room")}}, args(t, nil, nil), answer{time.Second, false}},
		"not admitted":        {topic.Options{Placer: placer{}}, args(t, hint("unknown"), nil), answer{time.Second, false}},
		"cannot be read":      {topic.Options{Placer: placer{}}, map[string]any{}, answer{time.Second, false}},
		"no states yet":       {topic.Options{Placer: placer{}, States: func() *inventory.States { return nil }}, args(t, nil, nil), answer{time.Second, false}},
		"passed on, in vain":  {topic.Options{Behind: &behind{answer: func(json.RawMessage) (json.RawMessage, error) { return nil, noAnswer }}}, args(t, nil, nil), answer{3 * time.Second, false}},
		"passed on with luck": {topic.Options{Behind: &behind{answer: func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage("[]"), nil }}}, args(t, nil, nil), answer{3 * time.Second, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var clock time.Duration // advances by a second with each reading
			got := make(chan answer, 10)
			tc.o.Elapsed = func() time.Duration { clock += time.Second; return clock }
			tc.o.Answered = func(took time.Duration, placed bool) { got <- answer{took, placed} }
			_, _ = serve(t, tc.o).ask(t, tc.args)
			if one := <-got; one != tc.want || len(got) > 0 {
				t.Errorf("got %v and %d more, want %v", one, len(got), tc.want)
			}
		})
	}
}

// The service drops a message without a reply address, and answers an unknown method or version
// with oslo's own exceptions.
func TestWhatIsNoRequestOfNovaDoesNoHarm(t *testing.T) {
	b := serve(t, topic.Options{Placer: placer{}})
	for _, body := range []string{
		"", "{", "null", "[]", `"x"`, "\xff\xfe", `{"oslo.version":"2.0"}`, `{"oslo.version":"3.0","oslo.message":"{}"}`,
		`{"oslo.version":"2.0","oslo.message":"["}`, `{"oslo.version":"2.0","oslo.message":"null"}`, `{"oslo.version":"2.0","oslo.message":"{\"method\":5}"}`,
		`{"oslo.version":"2.0","oslo.message":"{\"method\":\"select_destinations\",\"version\":\"4.5\",\"args\":[]}"}`,
	} {
		publish(t, b, []byte(body))
	}
	for _, tc := range []struct {
		target oslo.Target
		method string
		class  string
	}{
		{oslo.Target{Version: "4.5"}, "drop_all_hosts", "NoSuchMethod"},
		{oslo.Target{Version: "4.5"}, "", "NoSuchMethod"},
		{oslo.Target{Version: "4.6"}, "select_destinations", "UnsupportedVersion"},
		{oslo.Target{Version: "3.0"}, "select_destinations", "UnsupportedVersion"},
		{oslo.Target{}, "select_destinations", "UnsupportedVersion"},
		{oslo.Target{Version: "four"}, "select_destinations", "UnsupportedVersion"},
		{oslo.Target{Version: "4.5", Namespace: "baseapi"}, "select_destinations", "UnsupportedVersion"},
	} {
		_, err := b.call(t, tc.target, tc.method, args(t, nil, nil))
		checkRefusal(t, err, tc.class, dispatcher, "Endpoint does not support")
	}
	if answer, err := b.ask(t, args(t, nil, nil)); err != nil || !strings.Contains(string(answer), "cmp-007") {
		t.Errorf("after all that a request gets %s, %v", answer, err)
	}
}

func TestPingIsAnsweredAsByAnyServiceOfNova(t *testing.T) {
	b := serve(t, topic.Options{Placer: placer{}})
	answer, err := b.call(t, oslo.Target{Namespace: "baseapi", Version: "1.0"}, "ping", map[string]any{"arg": []int{1, 2}})
	if err != nil || string(answer) != `{"arg":[1,2],"service":"scheduler"}` {
		t.Errorf("ping is answered with %s, %v", answer, err)
	}
	if answer, err = b.call(t, oslo.Target{Namespace: "baseapi", Version: "1.1"}, "get_backdoor_port", nil); err != nil || len(answer) > 0 {
		t.Errorf("the backdoor is %s, %v", answer, err)
	}
}

func TestCastsArePassedOnUnchanged(t *testing.T) {
	stock := &behind{}
	b := serve(t, topic.Options{Behind: stock})
	casts := captured(t, "scheduler_fanout-*")
	if len(casts) != 5 {
		t.Fatalf("%d casts are captured, want 5", len(casts))
	}
	for _, cast := range casts {
		target := oslo.Target{Exchange: topic.Exchange, Topic: topic.Topic, Version: cast.Version}
		if err := b.client.Fanout(t.Context(), target, cast.Method, cast.Args); err != nil {
			t.Fatal(err)
		}
	}
	// The service handles one request at a time, in turn with casts.
	for range 1000 {
		if stock.count() == len(casts) {
			break
		}
		if _, err := b.call(t, oslo.Target{Namespace: "baseapi", Version: "1.0"}, "ping", nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, cast := range casts {
		if want := cast.Method + " " + cast.Version + " " + compact(t, cast.Args); !stock.has(want) {
			t.Errorf("nova-scheduler did not get %.300s", want)
		}
	}
	if told := len(b.changes); told != 4 {
		t.Errorf("%d changes are reported, want one for each cast except sync_instance_info", told)
	}
}
