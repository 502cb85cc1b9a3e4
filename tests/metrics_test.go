package tests

import (
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

func TestMetricsFollowTheConventionsOfPrometheus(t *testing.T) {
	s := start(t, newFolder(t, tenHosts))
	answer, err := http.Get(s.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	problems, err := promlint.New(answer.Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
