package cli

import (
	"context"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/store"
)

// fileCommands are sluice files.
type fileCommands struct{ *command }

func (c fileCommands) files() *cobra.Command {
	to := ""
	cmd := &cobra.Command{
		Use: "files CONNECTION [STREAM]", Short: "List or save the files that records hold",
		Long: `Lists the files that current records of a connection hold: statements, attachments,
pictures. With --to they are written to DIR/STREAM/, each under its name with the
beginning of its digest, which the record has; one that is there already is left.
Each is checked against its digest.`,
		Example: "  sluice files portal\n  sluice files portal statements --to statements/",
		Args:    args(1, 2, "a connection and perhaps a stream"),
		RunE: func(cmd *cobra.Command, a []string) error {
			stream := ""
			if len(a) == 2 {
				stream = a[1]
			}
			return c.withStoredData(cmd.Context(),
				func(src *client.Client) error { return c.doFiles(cmd.Context(), src, a[0], stream, to) })
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "save them in `DIR`")
	return cmd
}

// savedFile is what sluice files prints of a file.
type savedFile struct {
	host.File
	SavedAs string `json:"savedAs,omitempty"`
}

func (c fileCommands) doFiles(ctx context.Context, src *client.Client, connection, stream, to string) error {
	conn, err := findConnection(ctx, src, connection)
	if err != nil {
		return err
	}
	id := store.ConnectionID(conn.ConnectionID)
	if stream != "" {
		if _, err := findStreams(ctx, src, id, stream); err != nil {
			return err
		}
	}
	if to != "" {
		if err := os.MkdirAll(to, 0o700); err != nil {
			return usagef("--to %s: %w", to, err)
		}
	}
	var rows [][]string
	saved, present := 0, 0
	dirs, names := map[store.Stream]string{}, map[string]bool{}
	err = eachFile(ctx, src, store.FileQuery{Connection: id, Stream: store.Stream(stream), Limit: 1000},
		func(f store.HeldFile) error {
			out := savedFile{File: host.FileOf(id, f)}
			if to != "" {
				dir := dirs[f.Stream]
				if dir == "" {
					dir = fileOf(string(f.Stream), names)
					dirs[f.Stream] = dir
				}
				out.SavedAs = filepath.Join(to, dir, nameOf(f.File))
				fresh, err := c.save(ctx, src, id, f.File, out.SavedAs)
				if err != nil {
					return err
				}
				if saved++; !fresh {
					present++
				}
			}
			if c.json {
				return printJSON(c.out, out)
			}
			if to == "" {
				rows = append(rows, []string{string(f.Stream), f.Key, abi.Clean(f.Name), f.MediaType, bytesText(f.Size),
					string(f.Digest[:15])})
			}
			return nil
		})
	switch {
	case err != nil:
		return err
	case c.json:
		return nil
	case to != "":
		c.warnf("%s: %d files, %d of them were there", abi.Clean(to), saved, present)
		return nil
	case len(rows) == 0:
		c.warnf("No record of %s holds a file.", abi.Clean(connection))
		return nil
	}
	return c.table([]string{"stream", "key", "name", "type", "size", "digest"}, rows)
}

// eachFile calls do with every file that a query selects.
func eachFile(ctx context.Context, src host.Files, q store.FileQuery, do func(store.HeldFile) error) error {
	for {
		page, err := src.Files(ctx, q)
		if err != nil {
			return err
		}
		for _, f := range page.Files {
			if err := do(f); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		q.After = page.After
	}
}

// save writes a file unless it exists, and reports whether it did.
func (c fileCommands) save(ctx context.Context, src *client.Client, id store.ConnectionID, f store.File,
	path string) (bool, error) {
	if fi, err := os.Lstat(path); err == nil && fi.Mode().IsRegular() && fi.Size() == f.Size {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	content, _, err := src.OpenFile(ctx, id, f.Digest)
	if err != nil {
		return false, fmt.Errorf("save %s: %w", path, err)
	}
	defer content.Close()
	to, err := createFile("--to", path)
	if err != nil {
		return false, err
	}
	if _, err := io.Copy(to.buffer, content); err != nil {
		to.abandon()
		return false, fmt.Errorf("save %s: %w", path, err)
	}
	return true, to.commit()
}

// nameOf returns the name that a file is saved under: a connector chose its own, so nothing of it
// leads elsewhere, hides it or means something to a shell.
func nameOf(f store.File) string {
	name := strings.TrimLeft(export.FileName(f.Name), ".-")
	if len(name) > 100 {
		ext := filepath.Ext(name)
		name = name[:100-min(len(ext), 20)] + ext[:min(len(ext), 20)]
	}
	short := strings.TrimPrefix(string(f.Digest), "sha256:")[:32]
	if name == "" {
		if ext, err := mime.ExtensionsByType(f.MediaType); err == nil && len(ext) > 0 {
			short += ext[0]
		}
		return short
	}
	return short + "-" + name
}
