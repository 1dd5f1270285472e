package mail

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// farServer speaks SMTP at the other end of a pipe, which is no loopback address, and returns
// what was said to it once the client is gone.
func farServer(conn net.Conn) <-chan []string {
	heard := make(chan []string, 1)
	go func() {
		var lines []string
		fmt.Fprint(conn, "220 far.test\r\n")
		for in := bufio.NewScanner(conn); in.Scan(); {
			lines = append(lines, in.Text())
			switch {
			case strings.HasPrefix(in.Text(), "EHLO"):
				fmt.Fprint(conn, "250-far.test\r\n250 AUTH PLAIN LOGIN\r\n")
			case strings.HasPrefix(in.Text(), "AUTH"):
				fmt.Fprint(conn, "235 welcome\r\n")
			default:
				fmt.Fprint(conn, "250 ok\r\n")
			}
		}
		heard <- lines
	}()
	return heard
}

func TestPasswordGoesInTheClearOnlyWhenToldSo(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprint("disableStartTls=", plain), func(t *testing.T) {
			near, far := net.Pipe()
			heard := farServer(far)
			c := &connection{
				server: &server{host: "far.test", user: "ada", password: "s3cret-word", plain: plain, name: "me.test"},
				raw:    near, forget: func() bool { return true },
			}
			err := c.open(t.Context())
			c.drop()
			said := strings.Join(<-heard, "\n")
			if plain {
				require.NoError(t, err)
				require.Contains(t, said, "AUTH LOGIN")
				return
			}
			require.ErrorContains(t, err, "the server offers no encryption, so the password was not sent")
			require.NotContains(t, said, "AUTH")
		})
	}
}
