// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/reservation"
)

// Path is the path of the page, and sessionPath that of its session.
const (
	Path        = "/dashboard/"
	sessionPath = Path + "session"
)

// API serves the calendar page and its session. The page is no part of the API: its paths may change.
type API struct {
	// Files serves the files of the page; nil means that there is no page.
	Files http.Handler
	// SignIn exchanges what users of the page enter for tokens; nil means that nobody signs in.
	SignIn  SignIn
	Version string
	// Simulated is true if the cloud is simulated, and Speed is how many times as fast as real time its time passes.
	Simulated bool
	Speed     int
	// Feeds is true if projects have links to their feeds.
	Feeds bool
	// Ends states what users may choose for the end of a reservation.
	Ends Ends
	Log  *slog.Logger
}

// Ends states what a request may choose for the end of a reservation now; *booking.Service implements it.
type Ends interface {
	OnEnds() []reservation.OnEnd
}

// SignIn exchanges what users of the page enter for tokens; *keystone.SignIn implements it. It fails with an
// Unauthorized fault for wrong credentials.
type SignIn interface {
	SignIn(ctx context.Context, by keystone.SignInCredentials) (token string, err error)
	// Projects returns the projects for which the owner of the token can get one.
	Projects(ctx context.Context, token string) ([]keystone.Project, error)
	// AllProjects returns the projects that the owner of the token may list.
	AllProjects(ctx context.Context, token string) ([]keystone.Project, error)
	Revoke(ctx context.Context, token string) error
}
