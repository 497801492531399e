// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const otherProject = "10000000-0000-4000-8000-000000000002"

func set(value, origin string) operator.Override {
	return operator.Override{Value: value, Origin: origin}
}

func TestWhichAccount(t *testing.T) {
	own, other := set(iaasmock.DefaultProjectID, "--project-id"), set(otherProject, "--project-id")
	region := set("eu02", "$STACKIT_REGION")
	key, unreadable := set("key", "--service-account-key-path"), operator.Override{Read: func() (string, error) { return "", errors.New("no such key") }}
	for name, row := range map[string]struct {
		overrides, environment operator.Overrides
		noAuth                 bool
		// want is the project, region and origin, or the error.
		want string
	}{
		"nothing":                        {want: "10000000-0000-4000-8000-000000000001 eu01 Secret shoot--demo/credentials of MachineClass worker"},
		"project by flag, the classes'":  {overrides: operator.Overrides{ProjectID: own}, want: "10000000-0000-4000-8000-000000000001 eu01 Secret shoot--demo/credentials of MachineClass worker, projectId by --project-id"},
		"project by flag, another":       {overrides: operator.Overrides{ProjectID: other}, want: otherProject + " eu01 Secret shoot--demo/credentials of MachineClass worker, projectId by --project-id"},
		"project and key, no region":     {environment: operator.Overrides{ProjectID: other, ServiceAccountKey: unreadable}, want: "10000000-0000-4000-8000-000000000001 eu01 Secret"},
		"project and region, no key":     {environment: operator.Overrides{ProjectID: other, Region: region}, want: "10000000-0000-4000-8000-000000000001 eu01 Secret"},
		"region and key, no project":     {environment: operator.Overrides{Region: region, ServiceAccountKey: unreadable}, want: "10000000-0000-4000-8000-000000000001 eu01 Secret"},
		"all of the environment":         {environment: operator.Overrides{ProjectID: other, Region: region, ServiceAccountKey: key}, want: otherProject + " eu02 no Secret, projectId by"},
		"flag and environment together":  {overrides: operator.Overrides{ProjectID: other}, environment: operator.Overrides{Region: region, ServiceAccountKey: key}, want: otherProject + " eu02 no Secret, region by $STACKIT_REGION, serviceAccountKey by --service-account-key-path, projectId by --project-id"},
		"key of the environment":         {environment: operator.Overrides{ProjectID: other, Region: region, ServiceAccountKey: unreadable}, want: "no such key"},
		"key of the flag beats it":       {overrides: operator.Overrides{ServiceAccountKey: key}, environment: operator.Overrides{ProjectID: other, Region: region, ServiceAccountKey: unreadable}, want: otherProject + " eu02 no Secret"},
		"no key without authentication":  {overrides: operator.Overrides{ProjectID: other, Region: region}, noAuth: true, want: otherProject + " eu02 no Secret"},
		"project that is none, by flag":  {overrides: operator.Overrides{ProjectID: set("x", "--project-id")}, want: "MachineClass worker: Secret shoot--demo/credentials of MachineClass worker, projectId by --project-id: secret.projectId: Invalid value: must be a UUID"},
		"all, with a region that is bad": {environment: operator.Overrides{ProjectID: other, Region: set("/", "$STACKIT_REGION"), ServiceAccountKey: key}, want: "no Secret, projectId by --project-id, region by $STACKIT_REGION"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.op.Control = fake.NewClientBuilder().WithScheme(operator.Scheme()).WithObjects(r.objects...).Build()
			r.op.Overrides, r.op.Environment, r.op.NoAuth = row.overrides, row.environment, row.noAuth
			accounts, problems := r.op.Accounts(t.Context())
			got := ""
			for _, account := range accounts {
				got += account.Session.ProjectID + " " + account.Region + " " + account.Origin
			}
			for _, problem := range problems {
				got += problem.Error()
			}
			if len(accounts)+len(problems) != 1 || !strings.HasPrefix(got, row.want) {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// A project that a flag names has no class that carries the label: whether this is the
// right cluster, only the user can know.
func TestCleanDoubtsTheProjectOfAFlag(t *testing.T) {
	for name, row := range map[string]struct {
		overrides operator.Overrides
		doubts    int
	}{
		"none":              {operator.Overrides{}, 0},
		"the class's own":   {operator.Overrides{ProjectID: set(iaasmock.DefaultProjectID, "--project-id")}, 0},
		"another project":   {operator.Overrides{ProjectID: set(otherProject, "--project-id")}, 1},
		"another region":    {operator.Overrides{Region: set("eu02", "--region")}, 1},
		"a whole other one": {operator.Overrides{ProjectID: set(otherProject, "--project-id"), Region: set("eu01", "--region")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: 200, Body: `{"items":[]}`})
			r.op.Control = fake.NewClientBuilder().WithScheme(operator.Scheme()).WithObjects(r.objects...).Build()
			r.op.Overrides = row.overrides
			plan, err := r.op.PlanCleanup(t.Context(), operator.CleanOptions{ClusterKey: clusterKey, ClusterValue: ownCluster})
			if err != nil {
				t.Fatal(err)
			}
			if len(plan.Doubts) != row.doubts {
				t.Errorf("got doubts %v, want %d", plan.Doubts, row.doubts)
			}
		})
	}
}
