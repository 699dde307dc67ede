// Command serve opens the demonstration bank on this machine.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/sluicehost/sluice/tests/portal/site"
)

func main() {
	address := flag.String("listen", "127.0.0.1:8093", "where to listen")
	flag.Parse()
	o := site.Options{User: "ada", Password: cmp.Or(os.Getenv("PORTAL_PASSWORD"), "correct-horse"), Code: "271828"}
	l, err := net.Listen("tcp", *address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
	fmt.Printf("The bank is open at http://%s: user %s, password %s, code %s.\n", l.Addr(), o.User, o.Password, o.Code)
	server := &http.Server{Handler: site.New(o), ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, "serve:", server.Serve(l))
	os.Exit(1)
}
