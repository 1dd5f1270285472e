package service

import (
	"github.com/spf13/pflag"

	"github.com/reprise-engine/reprise/internal/config"
)

// Disk are the settings of what workflows may do with files of the machine.
type Disk struct {
	FilesDirs []string `env:"REPRISE_FILES_DIRS" help:"folders whose files workflows may read and write, such as /files,/data/in; empty is none"`
}

// DiskSettings are those of the environment, for programs that have no flags for them.
func DiskSettings() (Disk, error) {
	var d Disk
	return d, config.Bind(pflag.NewFlagSet("", pflag.ContinueOnError), &d)
}
