package corpus

import (
	"encoding/binary"
	"slices"
	"strings"
)

// A record has the parts of one record of a frame, so that each part can lie.
type record struct {
	op, keyKind        byte
	stream             uint16
	keyLength, dataLen uint32
	key, data          string
}

func upsert(key, data string) record {
	return record{keyLength: uint32(len(key)), dataLen: uint32(len(data)), key: key, data: data}
}

func (r record) bytes() []byte {
	b := []byte{r.op, r.keyKind}
	b = binary.LittleEndian.AppendUint16(b, r.stream)
	b = binary.LittleEndian.AppendUint64(b, 0)
	b = binary.LittleEndian.AppendUint32(b, r.keyLength)
	b = binary.LittleEndian.AppendUint32(b, r.dataLen)
	return slices.Concat(b, []byte(r.key), []byte(r.data))
}

// frame is a frame whose count is true.
func frame(records ...record) []byte { return framed(uint32(len(records)), records...) }

func framed(count uint32, records ...record) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{'S', 'R', 1, 0}, count)
	for _, r := range records {
		b = append(b, r.bytes()...)
	}
	return b
}

// frames lie about themselves or carry records that must not pass.
func frames() []Case {
	good := upsert("a", `{"id":"a"}`)
	lying := func(name, subtype string, bytes []byte) Case {
		return Case{Name: "frame-" + name, Group: GroupFrame, Rule: "record frames", Want: Violation, Subtype: subtype,
			Wasm: connector("", func(c *Connector) Code { return c.Session(c.Send("emit", bytes)) })}
	}
	changed := func(change func(*record)) []byte {
		r := good
		change(&r)
		return frame(r)
	}
	malformed := "frame_malformed"
	cases := []Case{
		lying("empty", malformed, nil),
		lying("seven-bytes", malformed, frame()[:7]),
		lying("magic", malformed, slices.Concat([]byte("RS"), frame(good)[2:])),
		lying("version-2", malformed, slices.Concat([]byte("SR\x02\x00"), frame(good)[4:])),
		lying("flags", malformed, slices.Concat([]byte("SR\x01\x80"), frame(good)[4:])),
		lying("count-4g", malformed, framed(^uint32(0), good)),
		lying("count-too-high", malformed, framed(2, good)),
		lying("count-too-low", malformed, framed(1, good, good)),
		lying("count-zero-with-records", malformed, framed(0, good)),
		lying("record-cut", malformed, frame(good)[:20]),
		lying("data-cut", malformed, frame(good)[:len(frame(good))-1]),
		lying("key-length-4g", malformed, changed(func(r *record) { r.keyLength = ^uint32(0) })),
		lying("data-length-4g", malformed, changed(func(r *record) { r.dataLen = ^uint32(0) })),
		lying("lengths-wrap-to-fit", malformed, changed(func(r *record) { r.keyLength, r.dataLen = ^uint32(0)-9, 21 })),
		lying("trailing-byte", malformed, append(frame(good), 0)),
		lying("stream-1", "record_for_undeclared_stream", changed(func(r *record) { r.stream = 1 })),
		lying("stream-65535", "record_for_undeclared_stream", changed(func(r *record) { r.stream = 0xffff })),
		lying("op-2", "record_invalid_op", changed(func(r *record) { r.op = 2 })),
		lying("key-kind-2", "record_invalid_key", changed(func(r *record) { r.keyKind = 2 })).subtypes(malformed),
		lying("key-empty", "record_invalid_key", frame(upsert("", `{"id":""}`))),
		lying("key-1025", "record_key_too_long", frame(upsert(strings.Repeat("k", 1_025), `{"id":"k"}`))),
		lying("key-utf8", "frame_invalid_utf8", frame(upsert("\xff", `{"id":"a"}`))).subtypes("record_invalid_key"),
		lying("data-missing", "record_invalid_data", frame(upsert("a", ""))).subtypes("frame_invalid_json", malformed),
		lying("data-array", "record_invalid_data", frame(upsert("a", `[{"id":"a"}]`))).subtypes("frame_not_object"),
		lying("data-null", "record_invalid_data", frame(upsert("a", `null`))).subtypes("frame_not_object"),
		lying("data-two-objects", "frame_invalid_json", frame(upsert("a", `{"id":"a"}{"id":"b"}`))),
		lying("data-duplicate", "frame_invalid_json", frame(upsert("a", `{"id":"a","x":{"y":1,"\u0079":2}}`))),
		lying("data-utf8", "frame_invalid_utf8", frame(upsert("a", "{\"id\":\"\xc0\xaf\"}"))),
		lying("data-deep", "frame_too_deep", frame(upsert("a", `{"id":"a","x":`+nestedArrays(64)+`}`))),
		lying("data-values", "record_too_large", frame(upsert("a", `{"id":"a","x":[0`+strings.Repeat(",0", 10_001)+`]}`))),
		lying("data-1m", "record_too_large", frame(upsert("a", `{"id":"`+strings.Repeat("a", 1<<20)+`"}`))),
	}
	giant := lying("giant", "frame_too_large", nil)
	giant.Wasm = connector("", func(c *Connector) Code {
		c.MemoryMin = 64
		return Seq(c.Start(), c.Raw("emit", 0, 2<<20), Drop, c.Done(0))
	})
	return append(cases, giant)
}

func nestedArrays(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}
