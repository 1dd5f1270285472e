package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/credentials"
)

func credentialsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "credentials", Short: "Encrypt the credentials file of workers, look at it, and test what is in it.",
		Long: `Take over credentials from n8n, encrypt the credentials file of workers, change its key, list what is
in it, and test it.

Each credential is encrypted for itself (AES-256-GCM) and bound to its id, name and type: to add one,
write it in plain text beside the others and encrypt again; to rename one, add it anew. Keys come from
REPRISE_CREDENTIALS_KEY_FILE or REPRISE_CREDENTIALS_KEY, which workers read too. There may be several: the
first encrypts, all decrypt.

To change the key while workers run: give them the new one after the old one; then put it first and
run "rotate"; then take the old one away.`,
		Example: `  reprise credentials keygen --out credentials.key
  export REPRISE_CREDENTIALS_KEY_FILE=credentials.key
  reprise credentials encrypt credentials.json
  reprise credentials list credentials.json`,
	}
	cmd.AddCommand(credentialsKeygenCommand(), credentialsListCommand(), credentialsImportCommand(), credentialsTestCommand(),
		credentialsChange("encrypt", "Encrypt what is in plain text in a credentials file.", "encrypted", (*credentials.File).Encrypt),
		credentialsChange("rotate", "Encrypt a credentials file anew with the first key.", "encrypted anew", (*credentials.File).Rotate))
	return cmd
}

func credentialsKeygenCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "keygen", Short: "Make a key and print it.", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := credentials.NewKey()
			if err != nil {
				return err
			}
			if out == "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "key id", key.ID)
				fmt.Fprintln(cmd.OutOrStdout(), key.Text())
				return nil
			}
			// A key that is overwritten is gone, with all that it opens.
			file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, os.ErrExist) {
				return fmt.Errorf("%s is there already, and is not overwritten", out)
			}
			if err != nil {
				return fmt.Errorf("write the key: %w", err)
			}
			_, err = fmt.Fprintf(file, "%s # %s\n", key.Text(), key.ID)
			if err = errors.Join(err, file.Close()); err != nil {
				return fmt.Errorf("write the key: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "key %s in %s\n", key.ID, out)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write it to, for its owner only (default: standard output)")
	return cmd
}

// credentialsChange makes a command that changes a credentials file.
func credentialsChange(name, about, done string, change func(*credentials.File, credentials.Keys) (int, error)) *cobra.Command {
	var out, keyFile string
	cmd := &cobra.Command{
		Use: name + " [FILE]", Short: about, Args: cobra.MaximumNArgs(1),
		Long: about + `

FILE defaults to REPRISE_CREDENTIALS_FILE. It is replaced as a whole or not at all, readable for its
owner only; --out leaves it alone and writes another one.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, keys, err := credentialsAccess(optional(args), keyFile)
			if err != nil {
				return err
			}
			file, err := credentials.Read(path)
			if err != nil {
				return err
			}
			n, err := change(file, keys)
			if err != nil {
				return err
			}
			if out == "" {
				out = path
			}
			if n > 0 || out != path {
				if err := file.Write(out); err != nil {
					return err
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d of %d credentials %s with key %s in %s\n", n, len(file.Entries), done, keys[0].ID, out)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write instead of FILE")
	keyFileFlag(cmd, &keyFile)
	return cmd
}

// listedCredential is one line of the list: never a value.
type listedCredential struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
	// Key that it is encrypted with, "" for plain text.
	Key    string `json:"key,omitempty"`
	Status string `json:"status"`
}

func credentialsListCommand() *cobra.Command {
	var keyFile string
	as := outputText
	cmd := &cobra.Command{
		Use: "list [FILE]", Short: "List credentials, and the keys they are encrypted with; never their values.", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := as.set(outputText, outputJSON); err != nil {
				return err
			}
			path, keys, err := credentialsAccess(optional(args), keyFile)
			if err != nil {
				return err
			}
			file, err := credentials.Read(path)
			if err != nil {
				return err
			}
			list := make([]listedCredential, 0, len(file.Entries))
			for _, e := range file.Entries {
				one := listedCredential{ID: e.ID, Name: e.Name, Type: e.Type, Status: e.Status(keys)}
				if e.Encrypted != nil {
					one.Key = e.Encrypted.KeyID
				}
				list = append(list, one)
			}
			out := cmd.OutOrStdout()
			if as == outputJSON {
				return printJSON(out, list)
			}
			fmt.Fprintln(out, styleFor(out).dim(fmt.Sprintf("%-20s  %-28s  %-24s  %-8s  %s", "ID", "NAME", "TYPE", "KEY", "STATUS")))
			for _, one := range list {
				fmt.Fprintf(out, "%-20s  %-28s  %-24s  %-8s  %s\n", shorten(one.ID, 20), shorten(one.Name, 28), shorten(one.Type, 24), shorten(one.Key, 8), one.Status)
			}
			return nil
		},
	}
	cmd.Flags().StringVar((*string)(&as), "output", string(outputText), "text or json")
	keyFileFlag(cmd, &keyFile)
	return cmd
}

func keyFileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "key-file", "", "file with the keys (default: REPRISE_CREDENTIALS_KEY_FILE or REPRISE_CREDENTIALS_KEY)")
}

// optional is the one argument that may be given.
func optional(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// credentialsAccess finds the credentials file and the keys: those that are named, or those of the
// environment.
func credentialsAccess(path, keyFile string) (string, credentials.Keys, error) {
	if path == "" {
		path = os.Getenv("REPRISE_CREDENTIALS_FILE")
	}
	if path == "" {
		return "", nil, errors.New("name the credentials file, or set REPRISE_CREDENTIALS_FILE")
	}
	if keyFile != "" {
		keys, err := credentials.ReadKeys(keyFile)
		return path, keys, err
	}
	keys, err := credentials.EnvironmentKeys()
	return path, keys, err
}
