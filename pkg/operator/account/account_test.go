// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func set(value, origin string) account.Override {
	return account.Override{Value: value, Origin: origin}
}

func TestWhichAccount(t *testing.T) {
	own, other := set(iaasmock.DefaultProjectID, "--project-id"), set(testrig.OtherProject, "--project-id")
	region := set("eu02", "$STACKIT_REGION")
	key, unreadable := set("key", "--service-account-key-path"), account.Override{Read: func() (string, error) { return "", errors.New("no such key") }}
	for name, row := range map[string]struct {
		overrides, environment account.Overrides
		noAuth                 bool
		// identity says that the Secret has a workload identity.
		identity bool
		// want is the project, region and origin, or the error.
		want string
	}{
		"nothing":                        {want: "10000000-0000-4000-8000-000000000001 eu01 Secret shoot--demo/credentials of MachineClass worker"},
		"project by flag, the classes'":  {overrides: account.Overrides{ProjectID: own}, want: "10000000-0000-4000-8000-000000000001 eu01 Secret shoot--demo/credentials of MachineClass worker, projectId by --project-id"},
		"project by flag, another":       {overrides: account.Overrides{ProjectID: other}, want: testrig.OtherProject + " eu01 Secret shoot--demo/credentials of MachineClass worker, projectId by --project-id"},
		"project and key, no region":     {environment: account.Overrides{ProjectID: other, ServiceAccountKey: unreadable}, want: "10000000-0000-4000-8000-000000000001 eu01 Secret"},
		"project and region, no key":     {environment: account.Overrides{ProjectID: other, Region: region}, want: "10000000-0000-4000-8000-000000000001 eu01 Secret"},
		"region and key, no project":     {environment: account.Overrides{Region: region, ServiceAccountKey: unreadable}, want: "10000000-0000-4000-8000-000000000001 eu01 Secret"},
		"all of the environment":         {environment: account.Overrides{ProjectID: other, Region: region, ServiceAccountKey: key}, want: testrig.OtherProject + " eu02 no Secret, projectId by"},
		"flag and environment together":  {overrides: account.Overrides{ProjectID: other}, environment: account.Overrides{Region: region, ServiceAccountKey: key}, want: testrig.OtherProject + " eu02 no Secret, region by $STACKIT_REGION, serviceAccountKey by --service-account-key-path, projectId by --project-id"},
		"key of the environment":         {environment: account.Overrides{ProjectID: other, Region: region, ServiceAccountKey: unreadable}, want: "no such key"},
		"key of the flag beats it":       {overrides: account.Overrides{ServiceAccountKey: key}, environment: account.Overrides{ProjectID: other, Region: region, ServiceAccountKey: unreadable}, want: testrig.OtherProject + " eu02 no Secret"},
		"key of the flag, identity":      {overrides: account.Overrides{ServiceAccountKey: key}, identity: true, want: "10000000-0000-4000-8000-000000000001 eu01 Secret shoot--demo/credentials of MachineClass worker, serviceAccountKey by"},
		"key of another, identity":       {identity: true, want: "10000000-0000-4000-8000-000000000001 eu01 Secret"},
		"no key without authentication":  {overrides: account.Overrides{ProjectID: other, Region: region}, noAuth: true, want: testrig.OtherProject + " eu02 no Secret"},
		"project that is none, by flag":  {overrides: account.Overrides{ProjectID: set("x", "--project-id")}, want: "MachineClass worker: Secret shoot--demo/credentials of MachineClass worker, projectId by --project-id: secret.projectId: Invalid value: must be a UUID"},
		"all, with a region that is bad": {environment: account.Overrides{ProjectID: other, Region: set("/", "$STACKIT_REGION"), ServiceAccountKey: key}, want: "no Secret, projectId by --project-id, region by $STACKIT_REGION"},
	} {
		t.Run(name, func(t *testing.T) {
			r := testrig.New(t)
			if row.identity {
				data := r.Objects[0].(*corev1.Secret).Data
				data["serviceAccountEmail"], data["token"] = []byte("a@b.c"), []byte("token")
			}
			r.Access.Control = fake.NewClientBuilder().WithScheme(account.Scheme()).WithObjects(r.Objects...).Build()
			r.Access.Overrides, r.Access.Environment, r.Access.NoAuth = row.overrides, row.environment, row.noAuth
			accounts, problems := r.Access.Accounts(t.Context())
			got := ""
			for _, each := range accounts {
				got += each.Session.ProjectID + " " + each.Region + " " + each.Origin
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
