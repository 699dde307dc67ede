// Package storetest defines what a store.Store is: a driver is right when
// Exercise passes. Subtests are small and named after the rule they prove.
//
// It trusts nothing about a driver but the interface. What only one driver
// promises (crash safety, its layout, its files) is tested beside that driver.
package storetest

import (
	"testing"

	"github.com/sluicehost/sluice/store"
)

// A Driver says how to get stores of one kind. Every store it returns is closed
// by the suite.
type Driver struct {
	// Open opens the store in dir, which is an empty one the first time.
	Open func(t *testing.T, dir string) store.Store
	// Forgets says that the driver keeps nothing: its stores are not closed and
	// opened again.
	Forgets bool
	// Reopen is what happens instead of closing s and opening it again, where it is
	// given: it returns a store with the same content. What never opens a store again
	// is left out of the suite then.
	Reopen func(t *testing.T, s store.Store) store.Store
	// OpenFailing returns an empty store that refuses the cursor of one stream,
	// with per-stream commits on or off.
	OpenFailing func(t *testing.T, stream store.Stream, perStream bool) store.Store
}

// Exercise runs the suite.
func Exercise(t *testing.T, d Driver) {
	t.Run("connectors", func(t *testing.T) { exerciseConnectors(t, d) })
	t.Run("connections", func(t *testing.T) { exerciseConnections(t, d) })
	t.Run("documents", func(t *testing.T) { exerciseDocuments(t, d) })
	t.Run("leases", func(t *testing.T) { exerciseLeases(t, d) })
	t.Run("runs", func(t *testing.T) { exerciseRuns(t, d) })
	t.Run("events", func(t *testing.T) { exerciseEvents(t, d) })
	t.Run("terminal", func(t *testing.T) { exerciseTerminal(t, d) })
	t.Run("states", func(t *testing.T) { exerciseStates(t, d) })
	t.Run("journals", func(t *testing.T) { exerciseJournals(t, d) })
	t.Run("questions", func(t *testing.T) { exerciseQuestions(t, d) })
	t.Run("gaps", func(t *testing.T) { exerciseGaps(t, d) })
	t.Run("grants", func(t *testing.T) { exerciseGrants(t, d) })
	t.Run("records", func(t *testing.T) { exerciseRecords(t, d) })
	t.Run("listing", func(t *testing.T) { exerciseListing(t, d) })
	t.Run("sorted", func(t *testing.T) { exerciseSorted(t, d) })
	t.Run("order", func(t *testing.T) { exerciseOrder(t, d) })
	t.Run("erase", func(t *testing.T) { exerciseErase(t, d) })
	t.Run("files", func(t *testing.T) { exerciseFiles(t, d) })
	t.Run("prune", func(t *testing.T) { exercisePrune(t, d) })
	t.Run("model", func(t *testing.T) { exerciseModel(t, d) })
	if d.Reopen == nil {
		t.Run("match", func(t *testing.T) { exerciseMatch(t, d) })
		t.Run("views", func(t *testing.T) { exerciseViews(t, d) })
		t.Run("watch", func(t *testing.T) { exerciseWatch(t, d) })
		t.Run("hook", func(t *testing.T) { exerciseHook(t, d) })
		t.Run("closed", func(t *testing.T) { exerciseClosed(t, d) })
	}
}
