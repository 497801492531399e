// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"fmt"
	"time"
)

// serverPayload is the body of CreateServer.
type serverPayload struct {
	Name             string             `json:"name"`
	MachineType      string             `json:"machineType"`
	AvailabilityZone string             `json:"availabilityZone"`
	AffinityGroup    string             `json:"affinityGroup"`
	KeypairName      string             `json:"keypairName"`
	ImageID          string             `json:"imageId"`
	BootVolume       *bootVolumePayload `json:"bootVolume"`
	Volumes          []string           `json:"volumes"`
	Networking       struct {
		NetworkID string   `json:"networkId"`
		NICIDs    []string `json:"nicIds"`
	} `json:"networking"`
	SecurityGroups      []string       `json:"securityGroups"`
	ServiceAccountMails []string       `json:"serviceAccountMails"`
	UserData            []byte         `json:"userData"`
	Labels              map[string]any `json:"labels"`
	Metadata            map[string]any `json:"metadata"`
	Agent               struct {
		Provisioned *bool `json:"provisioned"`
	} `json:"agent"`
}

type bootVolumePayload struct {
	Size                int64          `json:"size"`
	PerformanceClass    string         `json:"performanceClass"`
	DeleteOnTermination bool           `json:"deleteOnTermination"`
	Source              *sourcePayload `json:"source"`
}

// serverCreation is one CreateServer. resolve finds everything that the request names and
// may refuse it; create makes the server and cannot fail. What the request names and the
// server cannot have is left out: failure says why, and the server ends in ERROR.
type serverCreation struct {
	cloud   *Cloud
	request *request
	payload serverPayload
	now     time.Time

	server  Server
	network *network
	nics    []*nic
	boot    *Volume // an existing one, or a new one if bootIsNew
	volumes []*Volume

	bootIsNew bool
	failure   string
}

// cannot records why the server cannot have what the request names. It returns the
// refusal WithUnconfirmedRefusals.
func (o *serverCreation) cannot(reason string, refusal *apiError) *apiError {
	o.fail(reason)
	return o.cloud.unconfirmed(refusal)
}

// fail makes the server end in ERROR, with the first reason given.
func (o *serverCreation) fail(reason string) {
	o.failure = cmp.Or(o.failure, fmt.Sprintf("Build of instance %s aborted: %s", o.server.ID, reason))
}

func duplicateItem(id string) *apiError {
	return badRequest("Duplicate items in the list: '%s'", id)
}

// once returns the list without duplicates.
func (c *Cloud) once(ids []string) ([]string, *apiError) {
	seen, kept := make(map[string]bool, len(ids)), make([]string, 0, len(ids))
	for _, id := range ids {
		if seen[id] {
			if err := c.unconfirmed(duplicateItem(id)); err != nil {
				return nil, err
			}
			continue
		}
		seen[id], kept = true, append(kept, id)
	}
	return kept, nil
}
