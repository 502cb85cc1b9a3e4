// SPDX-License-Identifier: Apache-2.0

// Package webhooks serves the calls about webhooks.
package webhooks
