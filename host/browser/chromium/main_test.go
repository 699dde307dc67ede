package chromium_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// insideArg makes the test binary a process that tries what it is told to.
const insideArg = "inside"

// insideProcess reads lines "NETWORK ADDRESS TEXT", sends the text there, and prints what
// came back as one line.
func insideProcess() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		parts := strings.SplitN(in.Text(), " ", 3)
		fmt.Printf("%q\n", try(parts[0], parts[1], strings.ReplaceAll(parts[2], "|", "\r\n")))
	}
}

func try(network, address, text string) string {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return "not connected"
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(text)); err != nil {
		return "not sent"
	}
	if network == "udp" {
		return "sent"
	}
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return "answered " + strings.TrimSpace(line)
}
