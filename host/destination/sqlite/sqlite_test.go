package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/host/destination/destinationtest"
	"github.com/sluicehost/sluice/host/destination/sqlite"
)

func TestMain(m *testing.M) {
	destinationtest.Child(sqlite.Kind{})
	os.Exit(m.Run())
}

func TestSuite(t *testing.T) { destinationtest.Run(t, place) }

func TestKill(t *testing.T) { destinationtest.Kill(t, place(t), destinationtest.Kills(50)) }

func place(t *testing.T) destinationtest.Place { return placeAt(filepath.Join(t.TempDir(), "out.db")) }

func placeAt(path string) destinationtest.Place {
	db := func(t *testing.T) *sqlite3.Conn {
		t.Helper()
		c, err := sqlite3.Open("file:" + path)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	return destinationtest.Place{
		Kind: sqlite.Kind{}, URL: "sqlite:" + path,
		File: func(t *testing.T, digest, _ string) (b []byte) {
			t.Helper()
			c := db(t)
			defer c.Close()
			st, _, err := c.Prepare("SELECT bytes FROM _files WHERE digest = '" + digest + "'")
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			if st.Step() {
				b = append([]byte{}, st.ColumnBlob(0, nil)...)
			}
			return b
		},
		Rows: func(t *testing.T, table string) (out []map[string]string) {
			c := db(t)
			defer c.Close()
			st, _, err := c.Prepare("SELECT * FROM " + sqlite3.QuoteIdentifier(table))
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			for st.Step() {
				row := map[string]string{}
				for i := range st.ColumnCount() {
					switch {
					case st.ColumnType(i) == sqlite3.NULL:
					case st.ColumnDeclType(i) == "BOOLEAN":
						row[st.ColumnName(i)] = map[int64]string{0: "false", 1: "true"}[st.ColumnInt64(i)]
					default:
						row[st.ColumnName(i)] = st.ColumnText(i)
					}
				}
				out = append(out, row)
			}
			if err := st.Err(); err != nil {
				t.Fatal(err)
			}
			return out
		},
		Erase: func(t *testing.T) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
		Squat: func(t *testing.T, table string) {
			c := db(t)
			defer c.Close()
			if err := c.Exec("CREATE TABLE " + sqlite3.QuoteIdentifier(table) + " (mine INTEGER)"); err != nil {
				t.Fatal(err)
			}
		},
	}
}
