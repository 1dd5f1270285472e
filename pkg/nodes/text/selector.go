package text

import (
	"regexp"
	"strconv"

	"github.com/PuerkitoBio/goquery"
	"github.com/andybalholm/cascadia"
)

// positions are the selectors of jQuery that CSS does not have, at the end of a selector.
// n8n's selectors know them, and workflows use them.
var positions = regexp.MustCompile(`^(.*\S):(first|last|even|odd|eq\(\s*(-?\d+)\s*\)|gt\(\s*(-?\d+)\s*\)|lt\(\s*(-?\d+)\s*\))\s*$`)

// find is Find, but tells when a selector is not valid.
func find(in *goquery.Selection, selector string) (*goquery.Selection, error) {
	position := positions.FindStringSubmatch(selector)
	if position != nil {
		selector = position[1]
		found, err := find(in, selector)
		if err != nil {
			return nil, err
		}
		return at(found, position), nil
	}
	matcher, err := cascadia.Compile(selector)
	if err != nil {
		return nil, err
	}
	return in.FindMatcher(matcher), nil
}

func at(found *goquery.Selection, position []string) *goquery.Selection {
	number := func(i int) int {
		n, _ := strconv.Atoi(position[i])
		if n < 0 {
			n += found.Length()
		}
		return n
	}
	keep := func(which func(i int) bool) *goquery.Selection {
		return found.FilterFunction(func(i int, _ *goquery.Selection) bool { return which(i) })
	}
	switch {
	case position[3] != "":
		n := number(3)
		return keep(func(i int) bool { return i == n })
	case position[4] != "":
		n := number(4)
		return keep(func(i int) bool { return i > n })
	case position[5] != "":
		n := number(5)
		return keep(func(i int) bool { return i < n })
	case position[2] == "first":
		return found.First()
	case position[2] == "last":
		return found.Last()
	case position[2] == "even":
		return keep(func(i int) bool { return i%2 == 0 })
	}
	return keep(func(i int) bool { return i%2 == 1 })
}
