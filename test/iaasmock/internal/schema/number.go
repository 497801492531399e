// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"math"
)

// checkNumber checks a number against a schema of any kind. STACKIT reads all numbers as
// float64.
func checkNumber(kind string, number json.Number) *Violation {
	value, err := number.Float64()
	switch {
	case err != nil:
		return &Violation{reason: err.Error(), bare: true}
	case kind != "integer":
		return violation("value must be %s", withArticle(kind))
	case value != math.Trunc(value):
		return violation("value must be an integer")
	case value < math.MinInt64 || value > math.MaxInt64:
		return &Violation{bare: true, reason: fmt.Sprintf(`integer doesn't match the format "int64": value should be between %d and %d`,
			int64(math.MinInt64), int64(math.MaxInt64))}
	}
	return nil
}

func withArticle(kind string) string {
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}
