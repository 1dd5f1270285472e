package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/credentials"
)

func credentialsImportCommand() *cobra.Command {
	var into, keyFile string
	var replace, plain bool
	cmd := &cobra.Command{
		Use: "import EXPORT", Short: "Take over the credentials of n8n.", Args: cobra.ExactArgs(1),
		Long: `Take over the credentials of n8n.

EXPORT is what "n8n export:credentials --all --decrypted" writes: a file, a directory with a file for
each, or - for standard input. They are added to the credentials file, encrypted with the first key;
those that are there already (same type and id) stay as they are without --replace.`,
		Example: `  n8n export:credentials --all --decrypted --output=/dev/stdout | reprise credentials import -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, keys, err := credentialsAccess(into, keyFile)
			if err != nil {
				return err
			}
			if len(keys) == 0 && !plain {
				return errors.New("there is no key to encrypt them with; make one with \"reprise credentials keygen\", or say --plain to keep them in plain text")
			}
			entries, err := credentials.ReadExport(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				return fmt.Errorf("%s is a directory; name a file", path)
			}
			file, err := credentials.ReadOrNew(path)
			if err != nil {
				return err
			}
			added, replaced, skipped := file.Merge(entries, replace)
			if !plain {
				if _, err := file.Encrypt(keys); err != nil {
					return err
				}
			}
			if added+replaced > 0 {
				if err := file.Write(path); err != nil {
					return err
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d credentials added, %d replaced, %d were there already, in %s\n", added, replaced, skipped, path)
			return nil
		},
	}
	cmd.Flags().StringVar(&into, "into", "", "credentials file to add them to, made when it is missing (default: REPRISE_CREDENTIALS_FILE)")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace those that are there already")
	cmd.Flags().BoolVar(&plain, "plain", false, "do not encrypt")
	keyFileFlag(cmd, &keyFile)
	return cmd
}
