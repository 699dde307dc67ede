package stream

// FoldsOf is how many logs a hub keeps folded.
func FoldsOf(h *Hub) int {
	h.folds.mu.Lock()
	defer h.folds.mu.Unlock()
	return len(h.folds.runs)
}

// FeedsOf is how many runs a hub follows.
func FeedsOf(h *Hub) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.feeds)
}
