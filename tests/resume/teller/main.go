// Teller is a connector that knows nothing of Sluice: it speaks JSON lines on its standard
// input and output. It makes requests, asks, and collects.
package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

type line map[string]any

var (
	in   = bufio.NewReader(os.Stdin)
	sent int
)

func say(l line) {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(b))
}

func hear() line {
	text, err := in.ReadBytes('\n')
	var l line
	if err != nil || json.Unmarshal(text, &l) != nil {
		os.Exit(3)
	}
	return l
}

// ask reports whether the answer came. Where it was lost the request is not made again: the server counts.
func ask(server, path, word string) (came bool) {
	var nonce [8]byte
	rand.Read(nonce[:])
	id := hex.EncodeToString(nonce[:])
	say(line{"type": "REQUEST", "id": path, "method": "GET", "url": server + "/" + path + "?nonce=" + id,
		"headers": [][2]string{{"X-Word", word}}})
	r := hear()
	text := fmt.Sprint(r["body"])
	if e, _ := r["error"].(map[string]any); e["code"] == "reply_lost" {
		text = "lost"
	}
	sent++
	say(line{"type": "RECORD", "stream": "items", "key": path,
		"emitted_at": time.Now().UTC().Format(time.RFC3339), "data": line{
			"id": path, "text": text, "nonce": id, "at": time.Now().UTC().Format(time.RFC3339Nano)}})
	return text != "lost"
}

func question(kind, id, field string) string {
	say(line{"type": "INTERACTION", "request_id": id, "kind": kind, "message": "Which?", "schema": line{
		"type": "object", "required": []string{field}, "properties": line{field: line{"type": "string"}}}})
	fmt.Fprintln(os.Stderr, "asked", id)
	r := hear()
	data, _ := r["data"].(map[string]any)
	return fmt.Sprint(data[field])
}

func main() {
	start := hear()
	config, _ := start["config"].(map[string]any)
	server := fmt.Sprint(config["server"])
	for n := 1; !ask(server, "login", "") && n < 100; n++ {
		if ask(server, fmt.Sprintf("%d/login", n), "") {
			break
		}
	}
	ask(server, "a/0", "")
	ask(server, "season", question("clarification", "q1", "answer"))
	time.Sleep(2 * time.Millisecond)
	ask(server, "b/0", "")
	ask(server, "code", question("otp", "q2", "code"))
	ask(server, "c/0", "")
	say(line{"type": "DONE", "status": "succeeded", "records_emitted": sent})
}
