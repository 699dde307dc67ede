package jail

import (
	"encoding/json"
	"fmt"
	"os"
)

// canaryReached is the argument of a program that a canary managed to start.
const canaryReached = "reached"

// Canary is the main function of a canary, the command "worker canary" (S22);
// args follow these two. It enters, seals, makes the one attempt it is told to
// and says how that went, if it still can. The result is an exit status.
func Canary(args []string) int {
	if len(args) > 0 { // this is the program that an attempt to exec started
		return 9
	}
	socket := os.NewFile(SocketFD, "host")
	var order canaryOrder
	if err := json.NewDecoder(socket).Decode(&order); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	out := json.NewEncoder(socket)
	isolation, err := wallIn(order.Config)
	first := canaryLine{Isolation: isolation}
	if err != nil {
		first.Error = err.Error()
	}
	if err := out.Encode(first); err != nil || first.Error != "" {
		return 3
	}
	second := canaryLine{Isolation: isolation}
	if err := attempt(order.Attempt, order.Targets); err != nil {
		second.Error = err.Error()
	}
	if err := out.Encode(second); err != nil {
		return 4
	}
	return 0
}

func wallIn(cfg Config) (Isolation, error) {
	in, err := Enter(cfg, NoDir)
	if err != nil {
		return none(), err
	}
	return in.Seal()
}
