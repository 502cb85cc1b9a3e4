// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/tracing"
)

// openTracing opens the traces of this process; nil if [tracing] is off.
func openTracing(p process) (t *tracing.Tracer, f feature, err error) {
	o := p.config.Tracing
	o.Version, o.Instance, o.Host, o.Now, o.Log = p.version, p.replica, p.machine, time.Now, p.logOf("tracing")
	if t, err = tracing.New(o); err != nil {
		return nil, f, fmt.Errorf("[tracing]: %w", err)
	}
	f.closers = append(f.closers, t.Close)
	return t, f, nil
}
