// SPDX-License-Identifier: Apache-2.0

// Package service runs the built almanacd and command line as their users do, alone, beside MariaDB, RabbitMQ and
// Keystone, and while these are killed. The commands of the guides run here.
package service
