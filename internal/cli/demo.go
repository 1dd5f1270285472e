package cli

import "github.com/spf13/cobra"

func demoCommand() *cobra.Command {
	return &cobra.Command{Use: "demo", Short: "See an Agent survive the death of a worker; needs no key, server or file.", Args: cobra.NoArgs}
}
