// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Panel is a panel of the dashboard.
type Panel struct {
	ID          int
	Title, Type string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ Type, UID string }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Options     struct{ Legend struct{ ShowLegend bool } }
	Targets     []struct{ Expr, LegendFormat string }
}

// Panels returns the panels of the dashboard.
func Panels() ([]Panel, error) {
	content, err := read("dashboard.json")
	if err != nil {
		return nil, err
	}
	var dashboard struct{ Panels []Panel }
	decoder := json.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&dashboard); err != nil {
		return nil, fmt.Errorf("dashboard.json: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("dashboard.json: something follows the object")
	}
	return dashboard.Panels, nil
}
