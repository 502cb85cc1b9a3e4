// SPDX-License-Identifier: Apache-2.0

// Package energy decides which hosts are switched off and on (paper 004, section 004.1, with its
// errata). It counts how long hosts have been idle, forecasts how many hosts will be needed, makes
// the switch plan under safety rules, and decides the next step of each host that is being
// switched. Its functions are pure: package controller observes the hosts and carries out the
// decisions, and the simulator does the same on a virtual clock.
package energy
