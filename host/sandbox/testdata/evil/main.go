// Command evil is a worker in its guest's hands: it says hello and ready like
// any other, and then does what its task's name says.
package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
)

var (
	socket = os.NewFile(jail.SocketFD, "host")
	nextID uint32
)

// send sends a message with the next id.
func send(c abi.Call, payload []byte) {
	nextID++
	header(abi.WireHeader{Length: uint32(len(payload)), ID: nextID, Call: c}, payload)
}

func header(h abi.WireHeader, payload []byte) {
	if _, err := socket.Write(append(h.Append(nil), payload...)); err != nil {
		os.Exit(9)
	}
}

// receive reads one message of the host.
func receive() {
	var b [abi.WireHeaderBytes]byte
	if _, err := io.ReadFull(socket, b[:]); err != nil {
		os.Exit(9)
	}
	h, err := abi.ParseWireHeader(b[:])
	if err != nil {
		os.Exit(9)
	}
	if _, err := io.CopyN(io.Discard, socket, int64(h.Length)); err != nil {
		os.Exit(9)
	}
}

func main() {
	if len(os.Args) < 2 || os.Args[1] != "worker" {
		os.Exit(1)
	}
	send(abi.CallHello, abi.Hello{Build: "evil"}.Append(nil))
	load, files := receiveLoad()
	if load.Task == abi.TaskCompile {
		compile(files)
		send(abi.CallExit, abi.Exit{Kind: abi.ExitDone}.Append(nil))
		hang()
	}
	switch load.Name {
	case "garbage before ready":
		header(abi.WireHeader{Length: 3, ID: 77, Call: 9999}, []byte("abc"))
		hang()
	case "a call before ready":
		send(abi.CallProgress, nil)
		hang()
	case "exit before ready":
		send(abi.CallExit, abi.Exit{Kind: abi.ExitExited}.Append(nil))
		hang()
	case "death before ready":
		os.Stderr.WriteString("famous last words")
		os.Exit(5)
	case "a violation":
		violate(load)
	}
	send(abi.CallReady, abi.Ready{Isolation: abi.Isolation{Level: "process"}}.Append(nil))
	if load.Name == "a call before go" {
		send(abi.CallProgress, nil)
		hang()
	}
	receive() // go
	misbehave(load.Name)
}

func receiveLoad() (abi.Load, []*os.File) {
	b := make([]byte, 1<<20)
	n, files, err := jail.ReceiveFDs(socket, b)
	if err != nil {
		os.Exit(9)
	}
	load, err := abi.ParseLoad(b[abi.WireHeaderBytes:n])
	if err != nil {
		os.Exit(9)
	}
	return load, files
}

func hang() {
	for {
		receive()
	}
}

func misbehave(name string) {
	frame := make([]byte, 100)
	exit := abi.Exit{Kind: abi.ExitExited}.Append(nil)
	switch name {
	case "an unknown call":
		send(999, nil)
	case "a call of the host":
		send(abi.CallLoad, nil)
	case "reply relayed":
		send(abi.CallReply, nil)
	case "hello again":
		send(abi.CallHello, abi.Hello{}.Append(nil))
	case "ready again":
		send(abi.CallReady, abi.Ready{}.Append(nil))
	case "an id again":
		nextID--
		send(abi.CallEmit, frame)
	case "an id left out":
		nextID++
		send(abi.CallEmit, frame)
	case "an errno":
		nextID++
		header(abi.WireHeader{ID: nextID, Call: abi.CallProgress, Errno: abi.EIO}, nil)
	case "an unknown errno":
		nextID++
		header(abi.WireHeader{ID: nextID, Call: abi.CallProgress, Errno: 99}, nil)
	case "a giant":
		header(abi.WireHeader{Length: 1<<32 - 1, ID: nextID + 1, Call: abi.CallEmit}, nil)
	case "a frame over its limit":
		header(abi.WireHeader{Length: abi.MiB + 64*abi.KiB + 1, ID: nextID + 1, Call: abi.CallEmit}, nil)
	case "start with a payload":
		send(abi.CallStart, []byte{0})
	case "a short read":
		send(abi.CallRead, make([]byte, 4))
	case "a long close":
		send(abi.CallClose, make([]byte, 5))
	case "an endless sleep":
		send(abi.CallSleep, bytes.Repeat([]byte{0xff}, 8))
	case "an empty stdin":
		send(abi.CallStdin, make([]byte, 4))
	case "text of fd 9":
		send(abi.CallDiag, []byte{9, 'x'})
	case "a fault of a kind unknown":
		send(abi.CallFault, abi.RequestFault{Call: abi.CallEmit, Kind: 9}.Append(nil))
	case "two calls at once":
		send(abi.CallProgress, nil)
		send(abi.CallLog, nil)
	case "emit while waiting":
		send(abi.CallProgress, nil)
		send(abi.CallEmit, frame)
	case "emit beyond frames":
		for range abi.CreditFrames + 1 {
			send(abi.CallEmit, frame)
		}
	case "emit beyond bytes":
		for range abi.CreditFrames {
			send(abi.CallEmit, make([]byte, abi.MiB+1))
		}
	case "exit while waiting":
		send(abi.CallProgress, nil)
		send(abi.CallExit, exit)
	case "exit with a tail":
		send(abi.CallExit, append(exit, 0))
	case "exit of a kind unknown":
		send(abi.CallExit, abi.Exit{Kind: 77}.Append(nil))
	case "something after exit":
		send(abi.CallExit, exit)
		send(abi.CallLog, nil)
	case "half a header":
		socket.Write(make([]byte, 5))
		os.Exit(0)
	case "half a payload":
		header(abi.WireHeader{Length: 100, ID: nextID + 1, Call: abi.CallEmit}, make([]byte, 50))
		os.Exit(0)
	case "a closed socket":
		socket.Close()
		time.Sleep(time.Hour)
	case "exit, but staying":
		send(abi.CallExit, exit)
		time.Sleep(time.Hour)
	case "leaving without a word":
		os.Exit(0)
	case "crashing":
		os.Stderr.WriteString("famous last words")
		os.Exit(2)
	case "running out of memory":
		os.Stderr.WriteString("fatal error: runtime: out of memory")
		os.Exit(2)
	case "not reading":
		send(abi.CallStart, nil)
		time.Sleep(time.Hour)
	}
	hang()
}

// violate does what no filter allows.
func violate(load abi.Load) {
	var cfg jail.Config
	if json.Unmarshal(load.Jail, &cfg) != nil {
		os.Exit(9)
	}
	in, err := jail.Enter(cfg, jail.NoDir)
	if err != nil {
		os.Exit(9)
	}
	if _, err := in.Seal(); err != nil {
		os.Exit(9)
	}
	send(abi.CallReady, abi.Ready{Isolation: abi.Isolation(in.Isolation())}.Append(nil))
	receive()
	net.Dial("tcp", "127.0.0.1:1")
	os.Exit(0)
}

// compile leaves in the directory what the module asks for in plain text.
func compile(files []*os.File) {
	module, err := io.ReadAll(files[0])
	if err != nil {
		os.Exit(9)
	}
	dir, err := os.Readlink("/proc/self/fd/" + strings.TrimSpace(itoa(files[1].Fd())))
	if err != nil {
		os.Exit(9)
	}
	engine := filepath.Join(dir, "wazero-v0-evil")
	good := filepath.Join(engine, strings.Repeat("a", 64))
	must(os.MkdirAll(engine, 0o777))
	for _, what := range []string{"nothing", "two", "link", "hard", "elsewhere", "huge", "fifo", "nested"} {
		if !bytes.Contains(module, []byte("evil:"+what)) {
			continue
		}
		switch what {
		case "two":
			must(os.WriteFile(good, []byte("code"), 0o666))
			must(os.WriteFile(good[:len(good)-1]+"b", []byte("code"), 0o666))
		case "link":
			must(os.Symlink("/etc/passwd", good))
		case "hard":
			must(os.WriteFile(good, []byte("code"), 0o666))
			must(os.Link(good, filepath.Join(dir, "..", "hard")))
		case "elsewhere":
			must(os.WriteFile(filepath.Join(dir, "code"), []byte("code"), 0o666))
		case "nested":
			nest(engine)
		case "huge":
			must(os.WriteFile(good, nil, 0o666))
			must(os.Truncate(good, 1<<40))
		}
	}
}

// nest makes directories in each other, as deep as it can.
func nest(dir string) {
	const deep = 5_000
	must(os.Chdir(dir))
	for range deep {
		if os.Mkdir("d", 0o777) != nil || os.Chdir("d") != nil {
			return
		}
	}
}

func must(err error) {
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(9)
	}
}

func itoa(n uintptr) string {
	b, _ := json.Marshal(n)
	return string(b)
}
