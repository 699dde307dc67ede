package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Schedules lists them.
func (c scheduleClient) Schedules(ctx context.Context) ([]host.Schedule, error) {
	return all[host.Schedule](ctx, c.transport, at("schedules"), nil)
}

// Schedule returns the schedule of a connection.
func (c scheduleClient) Schedule(ctx context.Context, id store.ConnectionID) (out host.Schedule, err error) {
	return out, c.get(ctx, scheduleOf(id), nil, &out)
}

// PutSchedule sets when a connection runs by itself.
func (c scheduleClient) PutSchedule(ctx context.Context, id store.ConnectionID, d host.ScheduleDefinition,
	revision *uint64) (out host.Schedule, created bool, err error) {
	created, err = c.put(ctx, http.MethodPut, scheduleOf(id), revision, d, &out)
	return out, created, err
}

// PauseSchedule stops the ticks of a schedule until ResumeSchedule.
func (c scheduleClient) PauseSchedule(ctx context.Context, id store.ConnectionID) (out host.Schedule, err error) {
	return out, c.call(ctx, http.MethodPost, scheduleOf(id)+"/pause", nil, nil, &out)
}

// ResumeSchedule returns the end of PauseSchedule.
func (c scheduleClient) ResumeSchedule(ctx context.Context, id store.ConnectionID) (out host.Schedule, err error) {
	return out, c.call(ctx, http.MethodPost, scheduleOf(id)+"/resume", nil, nil, &out)
}

// DeleteSchedule deletes a schedule and keeps its history.
func (c scheduleClient) DeleteSchedule(ctx context.Context, id store.ConnectionID) error {
	return c.call(ctx, http.MethodDelete, scheduleOf(id), nil, nil, nil)
}

// ScheduleHistory lists ticks, newest first, at most 500 a page.
func (c scheduleClient) ScheduleHistory(ctx context.Context, id store.ConnectionID, before string,
	limit int) (page []host.Tick, next string, err error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	if before != "" {
		q.Set("cursor", before)
	}
	var out list[host.Tick]
	if err := c.get(ctx, scheduleOf(id)+"/history", q, &out); err != nil {
		return nil, "", err
	}
	if out.NextCursor != nil {
		next = *out.NextCursor
	}
	return out.Data, next, nil
}

// ScheduleStatistics returns the sums of all of it.
func (c scheduleClient) ScheduleStatistics(ctx context.Context, id store.ConnectionID) (host.Statistics, error) {
	var out struct {
		Statistics host.Statistics `json:"statistics"`
	}
	err := c.get(ctx, scheduleOf(id)+"/history", url.Values{"limit": {"1"}}, &out)
	return out.Statistics, err
}

func scheduleOf(id store.ConnectionID) string { return at("connections", string(id), "schedule") }
