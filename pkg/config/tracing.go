// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/almanac-cloud/almanac/pkg/tracing"

// tracingOptions are section [tracing].
func tracingOptions(t *tracing.Options) []option {
	return []option{
		boolean(&t.Enabled, "enabled", false,
			"Send traces of requests in OpenTelemetry's form."),
		text(&t.Endpoint, "endpoint", "http://127.0.0.1:4318/v1/traces",
			"URL of the collector to which traces are posted (OTLP over HTTP). An unreachable collector delays no request; the traces are lost."),
		number(in(&t.SampleRatio), "sample_ratio", 1, 0, 1,
			"Part of the requests that is traced. A request with a header traceparent follows its caller instead."),
	}
}
