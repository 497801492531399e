// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "github.com/expr-lang/expr"

type machineTypeView struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	VCPUs       int64             `json:"vcpus"`
	RAM         int64             `json:"ram"`
	Disk        int64             `json:"disk"`
	ExtraSpecs  map[string]string `json:"extraSpecs"`
}

func showMachineType(t MachineType) machineTypeView {
	return machineTypeView{
		Name: t.Name, Description: t.Description, VCPUs: t.VCPUs, RAM: t.RAM, Disk: t.Disk,
		ExtraSpecs: orEmptyMap(t.ExtraSpecs),
	}
}

// filterFields are the fields that a filter can use, by the document.
type filterFields struct {
	Disk       int64             `expr:"disk"`
	ExtraSpecs map[string]string `expr:"extraSpecs"`
	Name       string            `expr:"name"`
	RAM        int64             `expr:"ram"`
	VCPUs      int64             `expr:"vcpus"`
}

// listMachineTypes applies filter, a condition in the language of expr-lang. STACKIT
// accepts a subset, which is not published; the mock accepts all of it.
func (c *Cloud) listMachineTypes(r *request) (any, *apiError) {
	wanted, err := machineTypeFilter(r.URL.Query().Get("filter"))
	if err != nil {
		return nil, err
	}
	views := []machineTypeView{}
	for _, t := range c.catalogue.MachineTypes {
		ok, err := wanted(t)
		if err != nil {
			return nil, err
		}
		if ok {
			views = append(views, showMachineType(t))
		}
	}
	return items(views), nil
}

func machineTypeFilter(condition string) (func(MachineType) (bool, *apiError), *apiError) {
	if condition == "" {
		return func(MachineType) (bool, *apiError) { return true, nil }, nil
	}
	program, err := expr.Compile(condition, expr.Env(filterFields{}), expr.AsBool())
	if err != nil {
		// Source: the document: filter is an expression of expr-lang.
		return nil, badRequest("invalid filter: %v", err)
	}
	return func(t MachineType) (bool, *apiError) {
		result, err := expr.Run(program, filterFields{Disk: t.Disk, ExtraSpecs: t.ExtraSpecs, Name: t.Name, RAM: t.RAM, VCPUs: t.VCPUs})
		if err != nil {
			// Source: the document: filter is an expression of expr-lang.
			return false, badRequest("invalid filter: %v", err)
		}
		ok, _ := result.(bool)
		return ok, nil
	}, nil
}

func (c *Cloud) getMachineType(r *request) (any, *apiError) {
	machineType, ok := c.findMachineType(r.vars["machineType"])
	if !ok {
		return nil, notFound("machine type")
	}
	return showMachineType(machineType), nil
}

func (c *Cloud) listAvailabilityZones(r *request) (any, *apiError) {
	return items(c.catalogue.Regions[r.region()]), nil
}
