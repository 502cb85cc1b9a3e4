// SPDX-License-Identifier: Apache-2.0

// Package blazar knows the forms and words of Blazar's API, version 1: the bodies of requests, the
// times, the query language, the states of leases and reservations, and the texts of errors. It
// translates them to and from the types of packages reservation and inventory, and it decides
// nothing else. Package pkg/api serves them, and reservation/notice sends them.
//
// Keys, codes and texts are those of Blazar (blazar/api/v1, blazar/manager/exceptions.py,
// blazar/plugins), because its clients look for them.
package blazar
