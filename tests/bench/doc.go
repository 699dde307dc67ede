// Package bench holds the performance goals as benchmarks. Each figure stands
// beside its alternative, measured in the same run; `make bench` prints them.
package bench
