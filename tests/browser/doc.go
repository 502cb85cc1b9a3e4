// SPDX-License-Identifier: Apache-2.0

// Package browser uses the page, the demo and the site of the documentation in Chromium.
package browser
