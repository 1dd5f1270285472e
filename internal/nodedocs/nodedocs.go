// Package nodedocs writes docs/nodes.md: which node types there are, which versions and
// settings of them, and what part of the workflows that people publish they cover. The types
// come from the registry; data/ has counts of public workflows, which
//
//	go generate ./internal/nodedocs
//
// joins with them. The test of the package fails when the page is out of date.
//
// types.csv has a line per type: in how many of the 7,908 workflows it is, the number of its nodes,
// its class, its place in two orders, and the nodes of each version. Vendors' types in fewer than
// ten workflows are left out. shares.csv says what part of the workflows, in percent, has no
// types but the first so many of an order: "all" over all types, "core" when nodes of services,
// databases and models are pinned or mocked.
package nodedocs

import (
	"bytes"
	_ "embed" // the counts
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

//go:generate go test . -run TestPage -rewrite

//go:embed data/types.csv
var typesCSV []byte

//go:embed data/shares.csv
var sharesCSV []byte

// What the counts are of, and what they do not tell type by type.
const (
	workflows = 7908
	nodes     = 112559 // without sticky notes
	// Percent of the workflows that have no types but core ones, and but those, databases,
	// models and vector stores.
	allCore, allGeneric = 9.6, 17.5
)

// counted is a line of types.csv.
type counted struct {
	name             string
	workflows, nodes int
	class            string
	order, coreOrder int // 0: none
	versions         map[float64]int
}

// external reports whether the type is of a service that one has to have an account with.
func (c *counted) external() bool { return !c.core() && !c.generic() }

func (c *counted) core() bool { return strings.HasPrefix(c.class, "core") || c.class == "ai-core" }

func (c *counted) generic() bool {
	return c.class == "db" || c.class == "ai-model" || c.class == "ai-store"
}

func readTypes() ([]counted, error) {
	rows, err := csv.NewReader(bytes.NewReader(typesCSV)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("types.csv: %w", err)
	}
	list := make([]counted, 0, len(rows))
	for _, row := range rows[1:] {
		c := counted{name: row[0], class: row[3], versions: map[float64]int{}}
		for i, into := range map[int]*int{1: &c.workflows, 2: &c.nodes, 4: &c.order, 5: &c.coreOrder} {
			if row[i] == "" {
				continue
			}
			if *into, err = strconv.Atoi(row[i]); err != nil {
				return nil, fmt.Errorf("types.csv: %s: %w", c.name, err)
			}
		}
		for pair := range strings.FieldsSeq(row[6]) {
			version, count, _ := strings.Cut(pair, ":")
			v, err := strconv.ParseFloat(version, 64)
			if err != nil {
				continue // nodes without a version
			}
			n, err := strconv.Atoi(count)
			if err != nil {
				return nil, fmt.Errorf("types.csv: %s: %w", c.name, err)
			}
			c.versions[v] += n
		}
		list = append(list, c)
	}
	return list, nil
}

// readShares are the percentages of an order, by place.
func readShares(of string) (map[int]float64, error) {
	rows, err := csv.NewReader(bytes.NewReader(sharesCSV)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("shares.csv: %w", err)
	}
	shares := map[int]float64{}
	for _, row := range rows[1:] {
		place, err := strconv.Atoi(row[1])
		if err != nil {
			return nil, fmt.Errorf("shares.csv: %w", err)
		}
		if row[0] != of {
			continue
		}
		if shares[place], err = strconv.ParseFloat(row[2], 64); err != nil {
			return nil, fmt.Errorf("shares.csv: %w", err)
		}
	}
	return shares, nil
}
