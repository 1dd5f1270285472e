package ai

import "math"

var constants = map[string]float64{
	"PI": math.Pi, "pi": math.Pi, "E": math.E, "e": math.E, "tau": 2 * math.Pi, "phi": math.Phi,
	"SQRT2": math.Sqrt2, "LN2": math.Ln2, "LN10": math.Ln10, "Infinity": math.Inf(1), "NaN": math.NaN(),
}

// function is one of a single number, of several (at least some), or both.
type function struct {
	one   func(float64) float64
	many  func([]float64) float64
	least int
}

var functions = map[string]function{
	"sqrt": {one: math.Sqrt}, "cbrt": {one: math.Cbrt}, "abs": {one: math.Abs}, "sign": {one: sign},
	"ceil": {one: math.Ceil}, "floor": {one: math.Floor}, "trunc": {one: math.Trunc}, "fix": {one: math.Trunc},
	"round":   {one: func(x float64) float64 { return math.Floor(x + 0.5) }, many: roundTo, least: 2}, // halves go up, as in JavaScript
	"roundTo": {many: roundTo, least: 2},
	"exp":     {one: math.Exp}, "expm1": {one: math.Expm1}, "log1p": {one: math.Log1p},
	"log": {one: math.Log, many: logBase, least: 2}, "ln": {one: math.Log},
	"lg": {one: math.Log10}, "log10": {one: math.Log10}, "log2": {one: math.Log2},
	"sin": {one: math.Sin}, "cos": {one: math.Cos}, "tan": {one: math.Tan},
	"asin": {one: math.Asin}, "acos": {one: math.Acos}, "atan": {one: math.Atan},
	"sinh": {one: math.Sinh}, "cosh": {one: math.Cosh}, "tanh": {one: math.Tanh},
	"asinh": {one: math.Asinh}, "acosh": {one: math.Acosh}, "atanh": {one: math.Atanh},
	"atan2":     {many: func(a []float64) float64 { return math.Atan2(a[0], a[1]) }, least: 2},
	"pow":       {many: func(a []float64) float64 { return math.Pow(a[0], a[1]) }, least: 2},
	"mod":       {many: func(a []float64) float64 { return math.Mod(a[0], a[1]) }, least: 2},
	"factorial": {one: factorial}, "fac": {one: factorial}, "gamma": {one: math.Gamma},
	"hypot": {many: hypot, least: 1}, "pyt": {many: hypot, least: 1},
	"min": {many: least, least: 1}, "max": {many: greatest, least: 1},
	"sum": {many: sum, least: 1}, "mean": {many: func(a []float64) float64 { return sum(a) / float64(len(a)) }, least: 1},
	"if": {many: func(a []float64) float64 {
		if a[0] != 0 {
			return a[1]
		}
		return a[2]
	}, least: 3},
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

func roundTo(a []float64) float64 {
	scale := math.Pow(10, a[1])
	return math.Floor(a[0]*scale+0.5) / scale
}

func logBase(a []float64) float64 { return math.Log(a[0]) / math.Log(a[1]) }

// factorial is exact for whole numbers and goes through the gamma function for others.
func factorial(x float64) float64 {
	if x < 0 || x != math.Trunc(x) {
		return math.Gamma(x + 1)
	}
	product := 1.0
	for n := 2.0; n <= x && !math.IsInf(product, 0); n++ {
		product *= n
	}
	return product
}

func hypot(a []float64) float64 {
	total := 0.0
	for _, x := range a {
		total = math.Hypot(total, x)
	}
	return total
}

func least(a []float64) float64 {
	found := a[0]
	for _, x := range a {
		found = math.Min(found, x)
	}
	return found
}

func greatest(a []float64) float64 {
	found := a[0]
	for _, x := range a {
		found = math.Max(found, x)
	}
	return found
}

func sum(a []float64) float64 {
	total := 0.0
	for _, x := range a {
		total += x
	}
	return total
}
