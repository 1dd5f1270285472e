// Command reprise is the command line: run workflows, submit them, look at them.
package main

import (
	"os"
	_ "time/tzdata" // workflows name time zones, images may lack them

	"github.com/reprise-engine/reprise/internal/cli"
	"github.com/reprise-engine/reprise/internal/isolation"
)

func main() {
	isolation.Main()
	os.Exit(cli.Main(os.Args[1:]))
}
