// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package token

import "github.com/google/uuid"

// account is a service account.
type account struct{ email, subject, projectID string }

func newAccount(projectID string) account {
	return account{email: "mock-" + uuid.NewString()[:8] + "@sa.stackit.cloud", subject: uuid.NewString(), projectID: projectID}
}
