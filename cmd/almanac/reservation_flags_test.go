// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// flagValues are values of flags by their types.
var flagValues = map[string]string{"string": `"x"`, "int": "7", "int64": "7", "bool": "true", "duration": "7h", "time": "+2d", "stringSlice": "r-1"}

// besides are the flags of these commands that are about the call, not about the reservation.
var besides = map[string]bool{"dry-run": true, "if-match": true, "wait": true, "wait-timeout": true, "idempotency-key": true}

// sentByFlags returns the keys of the body of a call that a command sends with its arguments and one of its flags more, for
// each of its flags, by the name of the flag; "" is without any.
func sentByFlags(t *testing.T, path, call string, arguments ...string) map[string]map[string]any {
	t.Helper()
	a := newAPI(t)
	a.on("GET /v1/reservations/r-1", http.StatusOK, training())
	a.on(call, http.StatusOK, training())
	sent := map[string]map[string]any{}
	send := func(flag string, more ...string) {
		t.Helper()
		line := append(strings.Fields(path), append(arguments, more...)...)
		if got := almanac(t, a, line...); got.code != 0 && flag != "" {
			t.Errorf("almanac %v: %s", line, got.stderr)
		}
		asked := a.asked()
		body := map[string]any{}
		if last := len(asked) - 1; last >= 0 && asked[last].Line == call {
			if err := json.Unmarshal([]byte(asked[last].Body), &body); err != nil {
				t.Fatal(err)
			}
		}
		sent[flag] = body
	}
	send("")
	eachCommand(func(c *cobra.Command) {
		if c.CommandPath() != "almanac "+path {
			return
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			value, known := flagValues[f.Value.Type()]
			switch {
			case besides[f.Name] || f.Name == "help":
			case !known:
				t.Errorf("%s --%s: flagValues has no value of type %s", path, f.Name, f.Value.Type())
			default:
				send(f.Name, "--"+f.Name+"="+value)
			}
		})
	})
	return sent
}

// keysOf returns the keys of a JSON type.
func keysOf(of reflect.Type) map[string]bool {
	keys := map[string]bool{}
	for i := range of.NumField() {
		key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		keys[key] = true
	}
	return keys
}

// One flag is enough for a change, and each field of a change has its own.
func TestEachFieldOfAChangeHasItsFlagWhichIsEnough(t *testing.T) {
	missing := keysOf(reflect.TypeFor[v1.ReservationChange]())
	for flag, body := range sentByFlags(t, "reservation change", "PATCH /v1/reservations/r-1", "r-1") {
		if flag != "" && len(body) != 1 {
			t.Errorf("--%s sends %v, want one field", flag, body)
		}
		maps.DeleteFunc(missing, func(key string, _ bool) bool { _, is := body[key]; return is })
	}
	confirmation := sentByFlags(t, "reservation confirm", "PATCH /v1/reservations/r-1", "r-1")[""]
	maps.DeleteFunc(missing, func(key string, _ bool) bool { _, is := confirmation[key]; return is })
	for key := range missing {
		t.Errorf("no flag of reservation change sets %s", key)
	}
}

// withoutFlag names the fields of a request that no flag sets, and why.
var withoutFlag = map[string]string{"flavor": "--vcpus, --memory-mb and --disk-gb have its amounts"}

// Each flag of the commands that make reservations changes the request, and each field of the request has a flag or is
// always sent.
func TestEachFieldOfARequestIsSentByACommandOrHasAReason(t *testing.T) {
	missing := keysOf(reflect.TypeFor[v1.ReservationRequest]())
	for path, arguments := range map[string][]string{
		"reservation create": {"NAME", "--duration", "2h"},
		"host maintenance":   {"a", "--duration", "2h", "--reason", "r"},
	} {
		sent := sentByFlags(t, path, "POST /v1/reservations", arguments...)
		for flag, body := range sent {
			if flag != "" && reflect.DeepEqual(body, sent[""]) {
				t.Errorf("%s --%s does not change the request", path, flag)
			}
			maps.DeleteFunc(missing, func(key string, _ bool) bool { _, is := body[key]; return is })
		}
	}
	for key := range missing {
		if withoutFlag[key] == "" {
			t.Errorf("no flag sets %s: add one, or state in withoutFlag why there is none", key)
		}
	}
	for key := range withoutFlag {
		if !missing[key] {
			t.Errorf("withoutFlag names %s, which a flag sets, or which does not exist", key)
		}
	}
}
