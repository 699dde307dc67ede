package main

// A recent is a cache of bounded size that forgets what was not used lately. It
// has two generations: what is used moves to the young one, and when that has
// half the size, the old one goes.
type recent[K comparable, V any] struct {
	limit, used int // of one generation
	size        func(V) int
	young, old  map[K]V
}

func newRecent[K comparable, V any](limit int, size func(V) int) *recent[K, V] {
	return &recent[K, V]{limit: limit / 2, size: size, young: map[K]V{}, old: map[K]V{}}
}

func (r *recent[K, V]) get(key K) (V, bool) {
	if v, ok := r.young[key]; ok {
		return v, true
	}
	v, ok := r.old[key]
	if ok {
		delete(r.old, key)
		r.put(key, v)
	}
	return v, ok
}

// put keeps a value, unless it would fill a generation on its own.
func (r *recent[K, V]) put(key K, v V) {
	n := r.size(v)
	if n > r.limit/2 {
		return
	}
	if r.used+n > r.limit {
		r.young, r.old, r.used = r.old, r.young, 0
		clear(r.young)
	}
	r.young[key] = v
	r.used += n
}
