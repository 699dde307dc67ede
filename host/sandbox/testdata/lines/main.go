// Command lines is what the standard toolchain makes of an ordinary program.
package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	entries, err := os.ReadDir("/data")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Println(len(entries), err, in.Text())
	}
}
