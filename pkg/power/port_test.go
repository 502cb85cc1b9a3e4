// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/power"
)

var (
	_ controller.Agents = (*power.Fleet)(nil)
	_ controller.Agents = (*power.Agent)(nil)
)
