// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestImageBesideBootVolume(t *testing.T) {
	other := object{"type": "image", "id": iaasmock.SecondImageID}
	for _, row := range []struct {
		name, image string
		boot        object
		source      string
	}{
		{"the image is the source", iaasmock.DefaultImageID, object{"size": 20}, iaasmock.DefaultImageID},
		{"the volume's own source wins", iaasmock.DefaultImageID, object{"size": 20, "source": other}, iaasmock.SecondImageID},
		{"a source alone", "", object{"size": 20, "source": other}, iaasmock.SecondImageID},
	} {
		t.Run(row.name, func(t *testing.T) {
			fields := object{"bootVolume": row.boot, "imageId": row.image}
			if row.image == "" {
				delete(fields, "imageId")
			}
			m := openMock(t)
			made := m.want(201, "POST", inRegion+"/servers", serverBody(fields))
			server, _ := m.cloud.Server(made["id"].(string))
			if server.ImageID != "" || server.BootVolume == nil || server.BootVolume.SourceID != row.source {
				t.Errorf("it boots from %+v (image %q), want a volume from %s", server.BootVolume, server.ImageID, row.source)
			}
		})
	}
}

func TestProject(t *testing.T) {
	catalogue := iaasmock.DefaultCatalogue()
	catalogue.Projects = append(catalogue.Projects, iaasmock.Project{ID: nothing})
	m := openMock(t, iaasmock.WithCatalogue(catalogue))
	got := m.want(200, "GET", "/v2/projects/"+iaasmock.DefaultProjectID, nil)
	if got["id"] != iaasmock.DefaultProjectID || got["areaId"] != "PUBLIC" || got["status"] != "CREATED" {
		t.Errorf("IaaS shows %v", got)
	}
	const manager = "/resource-manager/v2/projects/"
	got = m.want(200, "GET", manager+iaasmock.DefaultProjectID+"?includeParents=false", nil)
	if got["name"] != "default" || got["projectId"] != iaasmock.DefaultProjectID || got["lifecycleState"] != "ACTIVE" || got["parents"] != nil {
		t.Errorf("the resource manager shows %v", got)
	}
	if got = m.want(200, "GET", manager+nothing+"?includeParents=true", nil); got["name"] != "project-"+nothing || len(got["parents"].([]any)) != 1 {
		t.Errorf("the resource manager shows %v", got)
	}
	for _, unknown := range []string{"/v2/projects/", manager} {
		m.want(404, "GET", unknown+"99999999-0000-4000-8000-000000000002", nil)
	}
	if counts := m.cloud.CallCounts(); counts["GetProjectDetails"] != 2 || counts["GetProject"] != 3 {
		t.Errorf("counted %v", counts)
	}
}

// TestProjectNeedsAToken checks that the resource manager needs a token, too.
func TestProjectNeedsAToken(t *testing.T) {
	m := newMock(t)
	for _, path := range []string{"/v2/projects/", "/resource-manager/v2/projects/"} {
		m.want(401, "GET", path+iaasmock.DefaultProjectID, nil)
	}
	if counts := m.cloud.CallCounts(); counts["GetProject"] != 1 || counts["GetProjectDetails"] != 1 {
		t.Errorf("counted %v", counts)
	}
}
