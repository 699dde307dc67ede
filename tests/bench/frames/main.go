//go:build wasip1

// Frames is a guest without the SDK that replays frames it encoded once:
// between two sends it only counts up the digits of its keys, so that every
// record is a new one.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/tests/bench/item"
)

//go:wasmimport sluice_v1 start
func hostStart(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 reply
func hostReply(dst unsafe.Pointer, n uint32) int32

//go:wasmimport sluice_v1 emit
func hostEmit(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 checkpoint
func hostCheckpoint(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 done
func hostDone(ptr unsafe.Pointer, n uint32) int64

const perFrame = 250

type settings struct {
	Config struct {
		Records int `json:"records"`
		First   int `json:"first"`
	} `json:"config"`
}

// place is where the digits of one record stand in the frame.
type place struct{ key, id int }

func main() {
	start := make([]byte, hostStart(nil, 0))
	hostReply(unsafe.Pointer(&start[0]), uint32(len(start)))
	var s settings
	if err := json.Unmarshal(start, &s); err != nil {
		os.Exit(1)
	}
	frame, places := encode(s.Config.First)
	for sent := 0; sent < s.Config.Records; sent += perFrame {
		for i, p := range places {
			digits := strconv.AppendInt(frame[p.key:p.key], int64(100_000_000+s.Config.First+sent+i), 10)
			copy(frame[p.id:], digits)
		}
		call(hostEmit, frame)
	}
	call(hostCheckpoint, fmt.Appendf(nil, `{"stream":"items","cursor":{"after":%d}}`, s.Config.First+s.Config.Records))
	call(hostDone, fmt.Appendf(nil, `{"status":"succeeded","records_emitted":%d}`, s.Config.Records))
}

func call(f func(unsafe.Pointer, uint32) int64, b []byte) {
	if f(unsafe.Pointer(&b[0]), uint32(len(b))) < 0 {
		os.Exit(1)
	}
}

// encode builds the one frame and finds the digits in it.
func encode(first int) ([]byte, []place) {
	var w abi.FrameWriter
	var places []place
	w.Begin()
	page := make([]item.Item, perFrame)
	item.Fill(page, first)
	for _, it := range page {
		data, err := json.Marshal(it)
		if err != nil {
			os.Exit(1)
		}
		key := w.Size() + abi.RecordHeaderSize
		places = append(places, place{key: key, id: key + len(it.ID) + len(`{"id":"`)})
		if w.Append(&abi.FrameRecord{Key: []byte(it.ID), Data: data}) != nil {
			os.Exit(1)
		}
	}
	return w.Finish(), places
}
