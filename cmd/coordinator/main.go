// Command coordinator runs a reprise coordinator; see its --help.
package main

import (
	_ "time/tzdata" // workflows name time zones, images may lack them

	"github.com/reprise-engine/reprise/internal/service"
)

func main() { service.Main(service.CoordinatorCommand) }
