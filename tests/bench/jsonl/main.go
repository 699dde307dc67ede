// Jsonl is the same connector as a native program: it writes the Collection
// Profile to its standard output.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/sluicehost/sluice/tests/bench/item"
)

type line struct {
	Type      string     `json:"type"`
	Stream    string     `json:"stream"`
	Key       string     `json:"key"`
	Data      *item.Item `json:"data"`
	EmittedAt string     `json:"emitted_at"`
}

func main() {
	records, _ := strconv.Atoi(os.Args[1])
	first, _ := strconv.Atoi(os.Args[2])
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		os.Exit(1)
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err := item.Pages(first, records, func(it *item.Item) error {
		return enc.Encode(line{"RECORD", "items", it.ID, it, it.Created})
	})
	if err != nil {
		os.Exit(1)
	}
	fmt.Fprintf(out, `{"type":"STATE","stream":"items","cursor":{"after":%d}}`+"\n", first+records)
	fmt.Fprintf(out, `{"type":"DONE","status":"succeeded","records_emitted":%d}`+"\n", records)
	if out.Flush() != nil {
		os.Exit(1)
	}
}
