// Package failpoint lets tests kill a process at an exact line. Builds with
// the tag "failpoints" read REPRISE_FAILPOINTS ("name" or "name=3" for the
// third pass, separated by commas); other builds contain none of it.
package failpoint
