package javascript

import (
	_ "embed" // the locales
	"encoding/json"
	"strings"
	"sync"
)

// localesJSON are the names and patterns of some forty locales, from CLDR 48: one
// object a locale, whose "base" is the locale it differs from.
//
//go:embed assets/locales.json
var localesJSON []byte

var locales = sync.OnceValue(func() map[string]map[string]any {
	raw := map[string]map[string]any{}
	_ = json.Unmarshal(localesJSON, &raw)
	all := make(map[string]map[string]any, len(raw))
	for tag, fields := range raw {
		if base, ok := fields["base"].(string); ok {
			fields = merged(raw[base], fields)
			delete(fields, "base")
		}
		all[tag] = fields
	}
	return all
})

func merged(base, over map[string]any) map[string]any {
	result := make(map[string]any, len(base))
	for k, v := range base {
		result[k] = v
	}
	for k, v := range over {
		b, bIsMap := result[k].(map[string]any)
		o, oIsMap := v.(map[string]any)
		if bIsMap && oIsMap {
			v = merged(b, o)
		}
		result[k] = v
	}
	return result
}

// aliases of languages whose main locale is not named by the language alone.
var aliases = map[string]string{
	"en": "en-US", "pt": "pt-BR", "zh": "zh-CN", "no": "nb", "nn": "nb", "iw": "he", "in": "id",
	"zh-hant": "zh-TW", "zh-hans": "zh-CN", "zh-hk": "zh-TW", "en-nz": "en-AU", "en-ie": "en-GB", "en-za": "en-GB", "en-sg": "en-GB",
	"en-hk": "en-GB", "es-ar": "es-MX", "es-cl": "es-MX", "es-co": "es-MX", "es-pe": "es-MX", "es-419": "es-MX", "es-us": "es-MX",
}

// localeData takes a language tag and answers {"tag": …, "data": …} of the nearest
// locale; undefined when the language is not there.
func localeData(tag string) (string, bool) {
	for lower := strings.ToLower(tag); lower != ""; {
		for name := range locales() {
			if strings.ToLower(name) == lower {
				raw, err := json.Marshal(map[string]any{"tag": name, "data": locales()[name]})
				return string(raw), err == nil
			}
		}
		if alias := aliases[lower]; alias != "" {
			lower = strings.ToLower(alias)
			continue
		}
		i := strings.LastIndexByte(lower, '-')
		if i < 0 {
			break
		}
		lower = lower[:i]
	}
	return "", false
}
