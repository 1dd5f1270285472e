package cli

import (
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/mockllm"
)

func mockLLMCommand() *cobra.Command {
	var addr, script, token string
	var think time.Duration
	cmd := &cobra.Command{
		Use:   "mock-llm",
		Short: "Serve a mock model over OpenAI's API until Ctrl-C.",
		Long: `Serve a mock model over OpenAI's chat completions and Responses API. With --script it plays
turns chosen by model name; any other model follows a built-in rule: it calls the offered tools that the prompt names
(a calculator for arithmetic), then answers with their results.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config := mockllm.Config{ThinkTime: think, Token: token}
			if script != "" {
				var err error
				if config.Script, err = readScript(script); err != nil {
					return err
				}
			}
			listener, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", addr)
			if err != nil {
				return fmt.Errorf("mock model: %w; choose another --addr", err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "mock model: http://%s/v1\n", listener.Addr())
			return mockllm.New(config).ServeListener(cmd.Context(), listener)
		},
	}
	f := cmd.Flags()
	f.StringVar(&addr, "addr", "127.0.0.1:8090", "address to listen on")
	f.StringVar(&script, "script", "", "JSON file of turns by model name")
	f.StringVar(&token, "token", "", "API key that requests must carry (default: any)")
	f.DurationVar(&think, "think", 0, "time to think before every answer")
	return cmd
}
