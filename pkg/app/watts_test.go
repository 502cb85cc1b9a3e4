// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func TestPrometheusTellsTheWattsOfHostsByTheOperatorsQuery(t *testing.T) {
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "psu_watts{node=\"n1\",psu=\"a\"} 60\npsu_watts{node=\"n1\",psu=\"b\"} 55.5\npsu_watts{node=\"n2\",psu=\"a\"} 9\n")
	}))
	defer exporter.Close()
	at := labtest.Prometheus(t, strings.TrimPrefix(exporter.URL, "http://"), url.QueryEscape(`psu_watts{node="n2"}`))

	meter, err := newWattmeter(config.Energy{WattsURL: at, WattsQuery: `psu_watts{node="{host}"}`})
	if err != nil {
		t.Fatal(err)
	}
	got, err := meter.read(t.Context(), []string{"n1", "n2", "n3"})
	if diff := cmp.Diff(map[string]float64{"n1": 115.5, "n2": 9}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}

	meter, err = newWattmeter(config.Energy{WattsURL: at, WattsQuery: `psu_watts{node="{host}"`})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := meter.read(t.Context(), []string{"n1"}); err == nil || !strings.Contains(err.Error(), "host n1") {
		t.Errorf("a query that cannot be parsed: got %v", err)
	}
}

func TestAWattsQueryNamesTheHost(t *testing.T) {
	_, err := newWattmeter(config.Energy{WattsURL: "http://127.0.0.1:9090", WattsQuery: "sum(psu_watts)"})
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v", err)
	}
}
