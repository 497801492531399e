// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package project reads from the environment in which real STACKIT project tests work.
package project

import (
	"errors"
	"fmt"
	"os"
)

// EnvReal is the variable that must be 1 before a test works in a real project, which costs money.
const EnvReal = "REAL"

// Project is a real project, and what servers in it are made of.
type Project struct {
	ID, Region, NetworkID, ImageID, MachineType string
	// Key is the service-account key (JSON).
	Key string
}

// FromEnvironment reads the project from variables. The error names each variable that is missing.
func FromEnvironment(lookup func(name string) (string, bool)) (Project, error) {
	var p Project
	var keyPath string
	var problems []error
	for _, variable := range []struct {
		name, meaning string
		value         *string
	}{
		{EnvReal, "1, since it costs money", new(string)},
		{"STACKIT_PROJECT_ID", "the project's UUID", &p.ID},
		{"STACKIT_REGION", "the region, such as eu01", &p.Region},
		{"STACKIT_NETWORK_ID", "the UUID of a network for the servers", &p.NetworkID},
		{"STACKIT_IMAGE_ID", "the UUID of an image that the servers boot", &p.ImageID},
		{"STACKIT_MACHINE_TYPE", "a small machine type", &p.MachineType},
		{"STACKIT_SERVICE_ACCOUNT_KEY_PATH", "the path of a key file", &keyPath},
	} {
		if *variable.value, _ = lookup(variable.name); *variable.value == "" {
			problems = append(problems, fmt.Errorf("%s is not set: must be %s", variable.name, variable.meaning))
		}
	}
	if len(problems) > 0 {
		return p, errors.Join(problems...)
	}
	key, err := os.ReadFile(keyPath)
	p.Key = string(key)
	return p, err
}
