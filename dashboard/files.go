package dashboard

import (
	"cmp"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// Bounds of the page of files: records per page, and the length of the position to continue from.
const (
	filesPage = 100
	maxAfter  = 8 << 10 // bytes
)

// A listedFile is a file of a record in the list of files.
type listedFile struct {
	host.File
	Title string
}

// listFiles lists the files in a connection's records.
func (u *recordUI) listFiles(c *fiber.Ctx) error {
	q := web.QueryOf(c)
	body := struct {
		Connection, Stream, Next string
		Files                    []listedFile
	}{Connection: q.Text("connection", 64), Stream: q.Text("stream", 256)}
	after := q.Text("after", maxAfter)
	if err := q.Err(); err != nil {
		return err
	}
	id := store.ConnectionID(body.Connection)
	page, err := u.files.Files(web.Context(c),
		store.FileQuery{Connection: id, Stream: store.Stream(body.Stream), After: after, Limit: filesPage})
	if err != nil {
		return err
	}
	for _, f := range page.Files {
		body.Files = append(body.Files, listedFile{host.FileOf(id, f), cmp.Or(f.Name, f.Field)})
	}
	if page.More && len(page.After) <= maxAfter {
		body.Next = page.After
	}
	return u.show(c, "files", content{Title: "Files", Nav: "data", Body: body})
}
