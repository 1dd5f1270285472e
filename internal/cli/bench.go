package cli

import "github.com/spf13/cobra"

func benchCommand() *cobra.Command {
	return &cobra.Command{Use: "bench", Short: "Measure executions per second against the floor of the same servers.", Args: cobra.NoArgs}
}
