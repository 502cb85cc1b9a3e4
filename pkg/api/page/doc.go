// SPDX-License-Identifier: Apache-2.0

// Package page serves the calendar page and its session: users sign in, change their project and sign out. pkg/dashboard
// has the files.
//
// The files, in the order of reading:
//
//   - api.go: what the page needs
//   - session.go: the session, and the cookie that stands for a token
//   - routes.go: the rows of the table
package page
