//go:build wasip1

// Command guest is the Go guest of the sandbox's tests: the first word of its
// environment variable DO says what it does. It speaks the bare ABI.
package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unsafe"
)

//go:wasmimport sluice_v1 start
func start(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 emit
func emit(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 progress
func progress(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 log
func logText(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 done
func done(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 read
func read(handle uint32, ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 close
func closeHandle(handle uint32) int64

//go:wasmimport sluice_v1 reply
func reply(ptr unsafe.Pointer, n uint32) int32

type function func(unsafe.Pointer, uint32) int64

func call(f function, request string) (string, int64) {
	n := f(unsafe.Pointer(unsafe.StringData(request)), uint32(len(request)))
	var out []byte
	var buf [100]byte
	for {
		got := reply(unsafe.Pointer(&buf[0]), uint32(len(buf)))
		if got <= 0 {
			return string(out), n
		}
		out = append(out, buf[:got]...)
	}
}

func main() {
	do := strings.Fields(os.Getenv("DO"))
	switch do[0] {
	case "echo": // START comes back as progress, piece by piece
		text, n := call(start, "")
		call(logText, fmt.Sprintf("%d bytes", n))
		call(progress, text)
		call(done, "{}")
	case "world":
		fmt.Println(os.Args, os.Environ())
		fmt.Fprintln(os.Stderr, "to fd 2")
		_, err := os.Open("/")
		fmt.Println(err)
	case "emit":
		var count, size int
		fmt.Sscan(do[1], &count)
		fmt.Sscan(do[2], &size)
		frame := strings.Repeat("x", size)
		for range count {
			if n := emit(unsafe.Pointer(unsafe.StringData(frame)), uint32(len(frame))); n != 0 {
				call(logText, fmt.Sprint("emit ", n))
			}
		}
		call(progress, "flush")
	case "ping":
		var count int
		fmt.Sscan(do[1], &count)
		for range count {
			call(progress, "{}")
		}
	case "sleep":
		before := time.Now()
		time.Sleep(300 * time.Millisecond) // long enough that it is not over before the host is asked
		call(logText, fmt.Sprint("slept ", time.Since(before) >= 300*time.Millisecond))
	case "handle":
		var buf [8]byte
		n := read(7, unsafe.Pointer(&buf[0]), 8)
		call(logText, fmt.Sprintf("%d %q", n, buf[:max(n, 0)]))
		call(logText, fmt.Sprint(closeHandle(7)))
		text, n := call(progress, strings.Repeat("p", 2<<20)) // over its limit
		call(logText, fmt.Sprint(n, text))
	case "alloc":
		var count int
		fmt.Sscan(do[1], &count)
		var keep [][]byte
		for range count {
			keep = append(keep, make([]byte, 1<<20))
		}
		call(logText, fmt.Sprint(len(keep)))
	case "lines": // stdio
		in := bufio.NewReader(os.Stdin)
		line, _ := in.ReadString('\n')
		fmt.Print(line)
		fmt.Print(strings.Repeat("y", 150_000), "\n")
		_, err := in.ReadString('\n')
		fmt.Fprint(os.Stderr, err)
		os.Stdin.Close()
	case "bytes": // stdio, a byte at a time
		for _, b := range []byte(strings.Repeat("b", 1000) + "\n") {
			os.Stdout.Write([]byte{b})
		}
	case "fakes": // what the engine would fake by default
		var b [8]byte
		rand.Read(b[:])
		fmt.Printf("%d %x", time.Now().UnixNano(), b)
	case "files":
		for range strings.Split(do[1], ",") {
			_, err := os.Create("/data/x")
			fmt.Println(errors.Unwrap(err))
		}
	case "exit":
		var code int
		fmt.Sscan(do[1], &code)
		os.Exit(code)
	case "panic":
		panic("on purpose")
	}
}
