//go:build wasip1 && (abi || stdio)

// Command player is the connector of the conformance tests. It does what its
// script says, right or wrong. The script arrives in START.config.script, as
// an array of steps:
//
//	say JSON          a message, with its type, as a connector on stdio writes it
//	repeat N say JSON  the same N times; %d becomes the number, from 1
//	write HEX         bytes to file descriptor 1
//	call FN HEX       a message function with that argument (ABI)
//	point FN PTR LEN  a message function with a pointer of its own making (ABI)
//	read              take a response from standard input (stdio)
//	echo start.NAME   a RECORD whose data shows a member of START,
//	echo response     of the latest response, without its type, or a member of it,
//	echo env.NAME     or of the environment
//	stderr TEXT       a line for the log
//	sleep MS, spin, alloc MIB, trap KIND, close-stdin, exit CODE
//
// It is compiled twice, with the build tags abi and stdio, and imports nothing
// of Sluice: it is an implementation of the contract of its own, so the
// contract is tested as well. It never checks whether the host refused a step:
// a connector that goes on regardless is what the host has to cope with.
package main

import (
	"strings"
	"syscall"
	"time"
)

// player is one run of a script.
type player struct {
	streams  []string // of the scope, in order
	start    string
	response string
}

func main() {
	p := &player{start: start()}
	scope := member(p.start, "scope")
	for _, s := range items(member(scope, "streams")) {
		p.streams = append(p.streams, text(member(s, "name")))
	}
	for _, step := range items(member(member(p.start, "config"), "script")) {
		p.step(text(step))
	}
}

func (p *player) step(s string) {
	op, rest, _ := strings.Cut(s, " ")
	switch op {
	case "say":
		p.say(rest)
	case "repeat":
		p.repeat(rest)
	case "write":
		write(1, unhex(rest))
	case "call":
		fn, arg, _ := strings.Cut(rest, " ")
		p.keep(call(fn, unhex(arg)))
	case "point":
		f := strings.Fields(rest)
		point(f[0], uint32(number(f[1])), uint32(number(f[2])))
	case "read":
		if line := readLine(); line != "" {
			p.response = line
		}
	case "echo":
		p.echo(rest)
	case "stderr":
		write(2, []byte(rest+"\n"))
	case "sleep":
		time.Sleep(time.Duration(number(rest)) * time.Millisecond)
	case "spin":
		for i := 0; ; i++ {
			sink = i
		}
	case "alloc":
		memory = make([]byte, number(rest)<<20)
		for i := 0; i < len(memory); i += 4096 {
			memory[i] = 1
		}
	case "trap":
		trap(rest)
	case "close-stdin":
		syscall.Close(0)
	case "exit":
		syscall.Exit(number(rest))
	}
}

var (
	sink   int
	memory []byte
)

func (p *player) repeat(s string) {
	count, step, _ := strings.Cut(s, " ")
	for i := range number(count) {
		p.step(strings.ReplaceAll(step, "%d", decimal(i+1)))
	}
}

// keep remembers what an answer said.
func (p *player) keep(reply string) {
	if reply != "" {
		p.response = reply
	}
}

// echo shows something the guest knows as a record of the first stream.
func (p *player) echo(what string) {
	from, name, inside := strings.Cut(what, ".")
	value := withoutType(p.response)
	switch from {
	case "response":
		if inside {
			value = member(p.response, name)
		}
	case "start":
		value = member(p.start, name)
	case "env":
		v, _ := syscall.Getenv(name)
		value = quote(v)
	}
	if value == "" {
		value = "null"
	}
	key := quote(what)
	p.say(`{"type":"RECORD","stream":` + quote(p.streams[0]) + `,"key":` + key +
		`,"data":{"id":` + key + `,"value":` + value + `},"emitted_at":"2026-01-01T00:00:00Z"}`)
}

func write(fd int, b []byte) {
	for len(b) > 0 {
		n, err := syscall.Write(fd, b)
		if err != nil || n <= 0 {
			return
		}
		b = b[n:]
	}
}
