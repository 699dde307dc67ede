package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
)

// searchCommand is sluice search.
type searchCommand struct{ *command }

func (c searchCommand) search() *cobra.Command {
	q := host.SearchQuery{}
	cmd := &cobra.Command{
		Use: "search WORDS…", Short: "Find records by the words in their texts",
		Long: `Looks for records in which all words are, whatever their case and accents: word, "words in a
row", begin* and, behind --, -word for what must not be there. The best are first. The first
search of a connection makes its index. With --json: one object, as GET /v1/search answers.`,
		Example: "  sluice search invoice may\n  sluice search '\"final notice\"' --connection mailbox --limit 5\n  sluice search 'invoi*' -- -draft",
		Args:    args(1, 100, "words to look for"),
		RunE: func(cmd *cobra.Command, words []string) error {
			q.Words = strings.Join(words, " ")
			return c.withStoredData(cmd.Context(), func(s *client.Client) error {
				found, err := s.Search(cmd.Context(), q)
				if err != nil {
					return err
				}
				return c.print(found)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&q.ConnectionID, "connection", "", "only the connection `NAME`")
	fl.StringVar(&q.Stream, "stream", "", "only streams of this `NAME`")
	fl.IntVar(&q.Limit, "limit", 20, "the most records, up to 100")
	return cmd
}

func (c searchCommand) print(found host.SearchResult) error {
	if c.json {
		return printJSON(c.out, found)
	}
	if len(found.Hits) == 0 {
		c.warnf("Nothing was found.")
		return nil
	}
	var rows [][]string
	for _, h := range found.Hits {
		var text []string
		for _, s := range h.Snippets {
			text = append(text, s.Field+": "+highlight(s))
		}
		rows = append(rows, []string{h.ConnectionID + "." + h.Stream, h.Key, c.timeText(h.IngestedAt),
			strings.Join(text, " · ")})
	}
	if found.More {
		defer c.warnf("There are more; --limit takes up to 100.")
	}
	return c.table([]string{"stream", "key", "stored", "found"}, rows)
}

// highlight returns a snippet with what was found between » and «.
func highlight(s host.Snippet) string {
	var b strings.Builder
	for _, p := range s.Parts {
		text := abi.Clean(p.Text)
		if p.Match {
			text = "»" + text + "«"
		}
		b.WriteString(text)
	}
	return b.String()
}
