// Command worker runs a reprise worker; see its --help.
package main

import (
	_ "time/tzdata" // workflows name time zones, images may lack them

	"github.com/reprise-engine/reprise/internal/isolation"
	"github.com/reprise-engine/reprise/internal/service"
)

func main() {
	isolation.Main()
	service.Main(service.WorkerCommand)
}
