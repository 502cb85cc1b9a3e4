// Package energy decides which hosts are switched off and on (paper 004, section 004.1,
// with its errata). It counts how long hosts have been idle, forecasts how many will be
// needed, makes the switch plan under safety rules, and decides the next step of each host
// that is being switched. It is pure: package controller observes and acts on its
// decisions, and the simulator does the same on a virtual clock.
package energy
