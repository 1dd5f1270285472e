package isolation

import (
	"os"
	"testing"
	_ "time/tzdata" // children cannot count on the machine's

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	Main()
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}
