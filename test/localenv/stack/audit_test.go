// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAnAuditLogIsReadWhileItIsWritten(t *testing.T) {
	g := NewWithT(t)
	log := `{"verb":"get","user":{"username":"system:serviceaccount:shoot:mcm"},"requestURI":"/version","responseStatus":{"code":200}}
{"verb":"update","user":{"username":"system:serviceaccount:shoot:mcm"},"objectRef":{"resource":"machines","namespace":"shoot","name":"first","apiGroup":"machine.sapcloud.io","subresource":"status"},"responseStatus":{"code":403}}
{"verb":"list","user":{"usern`
	g.Expect(readAuditLog(strings.NewReader(log))).To(ConsistOf(Request{
		User: "system:serviceaccount:shoot:mcm", Verb: "update", Group: "machine.sapcloud.io", Resource: "machines", Subresource: "status",
		Namespace: "shoot", Name: "first", Code: 403,
	}))
	_, err := readAuditLog(strings.NewReader("no JSON"))
	g.Expect(err).To(HaveOccurred())
}
