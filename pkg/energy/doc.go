// Package energy decides which hosts are switched off and on (paper 004, section 004.1,
// with its errata): it counts for how long hosts are idle, forecasts how many will be
// needed, makes the switch plan under safety rules, and says what becomes of one host
// step by step while it is switched. It is pure: package controller reads the world and
// carries out what is decided here, and the simulator does the same on a virtual clock.
package energy
