package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// giveNotice tells the owners of the victims when these have to go. The notice is stored
// before, so that another replica takes it back where this one is gone. An owner who cannot
// be told keeps no victim.
func (e *eviction) giveNotice(ctx context.Context, at time.Time) error {
	notice := Eviction{NoticeFor: at}
	for _, v := range e.victims {
		notice.Victims = append(notice.Victims, Victim{Host: v.on.Name, Claim: placing.Claim{Consumer: v.ID, ProjectID: v.ProjectID}})
	}
	if e.Evictions != nil {
		notice.ID = e.NewID()
		if err := e.Evictions.BeginEviction(ctx, notice); err != nil {
			return unrecorded(err)
		}
	}
	e.notice = &notice
	for _, v := range e.victims {
		if err := e.warn(ctx, Warning{Instance: v.Instance, At: at, Request: e.request.ID}); err != nil {
			e.Log.WarnContext(ctx, "the owner of an instance that makes room could not be told in every way", "instance", v.ID,
				"request", e.request.ID, "error", err)
		}
	}
	return nil
}

// unrecorded is the fault of an eviction that cannot be stored.
func unrecorded(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Message: "nobody can make room now; try again later", Err: err}
}

// warn tells one owner, within a bounded time.
func (d *Dispatcher) warn(ctx context.Context, w Warning) error {
	ctx, cancel := context.WithTimeout(ctx, warnTime)
	defer cancel()
	return d.Servers.Warn(ctx, w)
}

// takeBack tells the owners of victims that stay that they do not have to go. Sweep tells
// those who cannot be told now.
func (e *eviction) takeBack(ctx context.Context) {
	if e.notice == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	var untold []Victim
	for _, v := range e.victims {
		if err := e.warn(ctx, Warning{Instance: v.Instance, Request: e.request.ID}); err != nil {
			e.Log.WarnContext(ctx, "the owner of an instance that has not to make room any more could not be told; it is tried again",
				"instance", v.ID, "request", e.request.ID, "error", err)
			untold = append(untold, Victim{Claim: placing.Claim{Consumer: v.ID}})
		}
	}
	if len(untold) == 0 {
		e.forgetNotice(ctx)
		return
	}
	notice := *e.notice
	notice.Victims = untold
	e.debts.add(noticeDebt(notice))
}

// forgetNotice ends the record of a notice. One that stays in the database is taken back
// once this replica is gone, which changes nothing for victims that have left.
func (e *eviction) forgetNotice(ctx context.Context) {
	if e.Evictions == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	if err := e.Evictions.EndEviction(ctx, e.notice.ID); err != nil {
		e.Log.DebugContext(ctx, "the record of a notice stays for now", "request", e.request.ID, "error", err)
	}
}

// noticeDebt is a debt of which nothing is open but that owners do not know that their
// instances stay.
func noticeDebt(notice Eviction) *debt {
	b := &debt{noticeFor: notice.NoticeFor, returned: map[string]bool{}}
	if notice.ID != "" {
		b.records = []string{notice.ID}
	}
	for _, v := range notice.Victims {
		b.noticed = append(b.noticed, v.Claim.Consumer)
	}
	return b
}

// withdraw takes back the notices of a debt. What fails because Nova is away stays in the
// debt; what Nova refuses does not.
func (d *Dispatcher) withdraw(ctx context.Context, b *debt) error {
	var errs []error
	for _, id := range slices.Clone(b.noticed) {
		err := d.warn(ctx, Warning{Instance: inventory.Instance{ID: id}, Was: b.noticeFor})
		if fault.Is(err, fault.Unavailable) {
			errs = append(errs, err)
			continue
		}
		if err != nil {
			d.Log.WarnContext(ctx, "the owner of an instance that has not to make room any more could not be told", "instance", id, "error", err)
		}
		b.noticed = slices.DeleteFunc(b.noticed, func(one string) bool { return one == id })
	}
	return errors.Join(errs...)
}
