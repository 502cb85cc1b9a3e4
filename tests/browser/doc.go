// SPDX-License-Identifier: Apache-2.0

// Package browser uses the page, the demo and the site of the documentation in Chromium, and most of the page in Firefox.
package browser
