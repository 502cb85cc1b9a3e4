// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
)

// Routes returns the files of the page, and the calls for its session.
func (s API) Routes() []serving.Route {
	if s.Files == nil {
		return nil
	}
	return []serving.Route{
		serving.Get(sessionPath, s.signedInOrNot(), serving.InLine, serving.Brief, serving.ByNobody, serving.JSON(s.show)),
		serving.Post(sessionPath, serving.Anybody(), serving.OfAddress, serving.Brief, serving.ByNobody, serving.JSON(s.signIn)),
		serving.Patch(sessionPath, signedIn(), serving.InLine, serving.Brief, serving.ByNobody, serving.JSON(s.switchProject)),
		serving.Delete(sessionPath, serving.Anybody(), serving.OfAddress, serving.Brief, serving.ByNobody, s.signOut),
		serving.Get(Path+"projects", serving.Rule("reservations:list_all"), serving.InLine, serving.OnePage, serving.ByNobody, serving.JSON(s.nameProjects)),
		// The redirection is relative, so that it is right behind a proxy with a prefix too.
		serving.Get("/dashboard", serving.Anybody(), serving.AtOnce, serving.Brief, serving.ByAnybodyNew, redirect("dashboard/")),
		serving.Get(Path+"*file", serving.Anybody(), serving.AtOnce, serving.OnePage, serving.ByAnybodyNew, serving.Handler(http.StripPrefix("/dashboard", s.Files))),
	}
}

// signedInOrNot admits visitors of the page, and identifies those that have signed in; the requests of the others are
// those of their address.
func (s API) signedInOrNot() serving.Access {
	return serving.Access{Caller: "everybody, or a token", Admit: []serving.Step{func(c *serving.Call) {
		if s.SignIn == nil || c.Token() != "" {
			serving.Authenticate(c)
		} else {
			serving.FromAddress(c)
		}
	}}}
}

// signedIn admits visitors of the page that have signed in.
func signedIn() serving.Access { return serving.Loading(nil) }

// redirect returns the step that sends clients to another place for ever.
func redirect(to string) serving.Step {
	return func(c *serving.Call) {
		c.Header("Location", to)
		c.Status(http.StatusPermanentRedirect)
	}
}
