package api

import (
	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// leaseRoutes registers the calls for leases.
func (s *server) leaseRoutes(leases *gin.RouterGroup) {
	leases.GET("/:id", s.findLease("blazar:leases:get"), s.json(s.showLease))
}

const leaseKey = "lease"

// findLease loads the lease in the path. As in Blazar, a caller learns that another project's lease
// exists: it is denied, not missing.
func (s *server) findLease(rule string) gin.HandlerFunc {
	return func(c *gin.Context) {
		id := pathID(c)
		if err := allow(c, rule, asking(c).ProjectID); err != nil {
			s.fail(c, err)
			return
		}
		l, err := s.Blazar.Leases.Lease(c.Request.Context(), id)
		if fault.Is(err, fault.NotFound) {
			err = blazar.NoLease(id)
		}
		if err == nil {
			err = allow(c, rule, l.ProjectID)
		}
		if err != nil {
			s.fail(c, err)
			return
		}
		c.Set(leaseKey, l)
	}
}

func foundLease(c *gin.Context) reservation.LeaseRecord {
	return c.MustGet(leaseKey).(reservation.LeaseRecord)
}

// showLease handles GET /v1/leases/{id}.
func (s *server) showLease(c *gin.Context) (any, error) {
	return gin.H{"lease": foundLease(c).ID}, nil
}
