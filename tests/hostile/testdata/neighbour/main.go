// Neighbour is an honest connector that runs during the attacks.
package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		os.Exit(1)
	}
	out := bufio.NewWriter(os.Stdout)
	for i := range 1000 {
		fmt.Fprintf(out, `{"type":"RECORD","stream":"items","key":"k%d","data":{"id":"k%d"},"emitted_at":"2026-01-01T00:00:00Z"}`+"\n", i, i)
	}
	fmt.Fprintln(out, `{"type":"STATE","stream":"items","cursor":{"after":1000}}`)
	fmt.Fprintln(out, `{"type":"DONE","status":"succeeded","records_emitted":1000}`)
	if out.Flush() != nil {
		os.Exit(1)
	}
}
