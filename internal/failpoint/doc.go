// Package failpoint lets tests kill or stop a process at an exact line. Builds with
// the tag "failpoints" read REPRISE_FAILPOINTS, entries with commas between them:
//
//	name            killed when it passes the point
//	name=3          the third time
//	name:stop       stopped there (SIGSTOP), until somebody continues it; once
//	name=2@FILE     passes count from when FILE exists
//
// Other builds contain none of it.
package failpoint
