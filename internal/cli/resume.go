package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

func resumeCommand() *cobra.Command {
	var s servers
	var data, suffix, asOutput string
	cmd := &cobra.Command{
		Use: "resume EXECUTION", Short: "End an execution's wait for a webhook, as if the webhook had been called.",
		Long: `End an execution's wait for a webhook, as a call of its resume URL does; the waiting node gives
out {"headers": {}, "params": {}, "query": {}, "body": DATA}. Of several waits it is the oldest
that fits. A question to a person is answered with "approve" and "deny" instead.`,
		Example: `  reprise executions resume order-4711
  reprise executions resume order-4711 --data '{"paid":true}' --suffix payment`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			body, err := readBody(data)
			if err != nil {
				return err
			}
			item, err := json.Marshal(map[string]any{"headers": struct{}{}, "params": struct{}{}, "query": struct{}{}, "body": body})
			if err != nil {
				return err
			}
			return withConn(cmd, &s, func(ctx context.Context, conn *queue.Conn) error {
				id := engine.ExecutionID(args[0])
				answer, err := conn.Resume(ctx, queue.ResumeRequest{Execution: id, Suffix: suffix, Data: item})
				if err != nil {
					return notResumed(ctx, conn, id, err)
				}
				if o == outputJSON {
					return printJSON(cmd.OutOrStdout(), map[string]any{"execution": id, "response": answer.Response})
				}
				fmt.Fprintln(cmd.OutOrStdout(), "resumed", id)
				if answer.Response.Body != "" {
					fmt.Fprintln(cmd.OutOrStdout(), answer.Response.Body)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&data, "data", "{}", "body of the call: JSON, or @FILE")
	cmd.Flags().StringVar(&suffix, "suffix", "", "webhook suffix of the waiting node, when it has one")
	cmd.Flags().StringVar(&asOutput, "output", string(outputText), "text or json")
	s.natsFlag(cmd, defaultNATS, "NATS server")
	return cmd
}

// readBody reads the value of --data, any JSON.
func readBody(text string) (json.RawMessage, error) {
	data := []byte(text)
	if file, ok := strings.CutPrefix(text, "@"); ok {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("--data: %w", err)
		}
	}
	if data = bytes.TrimSpace(data); !json.Valid(data) {
		return nil, errors.New("--data must be JSON, or @FILE with it; a text needs quotes: --data '\"hello\"'")
	}
	return data, nil
}

// notResumed adds what the execution waits for to a refusal.
func notResumed(ctx context.Context, conn *queue.Conn, id engine.ExecutionID, err error) error {
	problem := (*queue.Problem)(nil)
	if !errors.As(err, &problem) || problem.Code != queue.CodeConflict {
		return err
	}
	x, looked := conn.Get(ctx, id, false)
	if looked != nil {
		return err
	}
	text := fmt.Sprintf("%v; it is %s", err, x.Status)
	for i := range x.Waiting {
		text += "\n  " + waitingText(&x.Waiting[i])
	}
	return &exitError{service.ExitUsage, errors.New(text)}
}
