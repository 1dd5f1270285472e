package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/curl"
)

func importCurlCommand() *cobra.Command {
	var whole bool
	cmd := &cobra.Command{
		Use: "import-curl COMMAND", Short: "Make an HTTP Request node of a cURL command line.",
		Long: `Print an HTTP Request node (version 4.2) that sends what a cURL command line does, to be put
into a workflow. Give the command as one argument in quotes, - for standard input, or its words
behind --. What the node cannot do is told on standard error; nothing is sent.`,
		Example: `  reprise import-curl 'curl -X POST https://api.example.com/v1/orders -H "X-Key: 1" --json "{\"id\":7}"'
  pbpaste | reprise import-curl -
  reprise import-curl --workflow 'curl https://example.com' | reprise run -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			if len(words) == 1 {
				line := words[0]
				if line == "-" {
					data, err := io.ReadAll(cmd.InOrStdin())
					if err != nil {
						return fmt.Errorf("read the command line: %w", err)
					}
					line = string(data)
				}
				var err error
				if words, err = curl.Words(line); err != nil {
					return err
				}
			}
			if len(words) == 0 {
				return errors.New("the command line is empty")
			}
			request, err := curl.Parse(words)
			if err != nil {
				return err
			}
			for _, note := range request.Notes {
				warner(cmd)(note)
			}
			n := request.Node()
			if !whole {
				return printJSON(cmd.OutOrStdout(), n)
			}
			n.Position = [2]int{220, 0}
			return printJSON(cmd.OutOrStdout(), map[string]any{
				"name":        "From cURL",
				"nodes":       []any{map[string]any{"parameters": map[string]any{}, "name": "Start", "type": "n8n-nodes-base.manualTrigger", "typeVersion": 1, "position": []int{0, 0}}, n},
				"connections": map[string]any{"Start": map[string]any{"main": [][]any{{map[string]any{"node": n.Name, "type": "main", "index": 0}}}}},
				"settings":    map[string]any{"executionOrder": "v1"},
			})
		},
	}
	cmd.Flags().BoolVar(&whole, "workflow", false, "print a whole workflow that runs the node")
	return cmd
}
