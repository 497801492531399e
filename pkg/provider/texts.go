// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The texts by which failures are told apart: the driver's errors are made of them, and package
// operator finds causes and remedies by them. Some are formats, in which a verb stands for
// what differs.
const (
	TextRefused        = "the API refused the request"
	TextNoMachineType  = "the API does not have the providerSpec's machineType"
	TextMissing        = "something that the providerSpec or Secret names was not found"
	TextCredentials    = "Authentication failed"
	TextForbidden      = "the service account is not authorized"
	TextQuota          = "Quota exceeded"
	TextNoHost         = "There are not enough hosts available"
	TextInterrupted    = "waiting for the server was interrupted"
	TextAnotherCall    = "another call is creating the server of machine %s"
	TextNotAllowed     = "its NICs do not carry all allowedAddresses"
	TextNoAddress      = "not all of its NICs have an address"
	TextNotOurs        = "is not this machine's and is left alone"
	TextNotTakenOver   = "machine %s came from OpenStack, and not exactly one server is found that is its: it gets no other"
	TextElsewhere      = "machine %s has or may have a server in project"
	TextUnlabelled     = "does not show the labels that it was created with"
	TextOthersServer   = "the answer to the create request of machine %s named server"
	TextLabelsDropped  = "was created without the labels that were sent"
	TextClusterUnknown = "the cluster label in the providerSpec of MachineClass %s cannot be used"
	TextInUse          = "a NIC or volume that the providerSpec names is in use"
	TextMayBeSent      = "a request for a server of machine %s may have been sent"
	TextLate           = "not done in time"
	TextDeletedUnderUs = "the server of machine %s was deleted while it was being created"
	TextBusy           = "the server is busy"
	TextTwoDeletes     = "two DELETEs of server %s were accepted"
	TextTooYoung       = "it is too young to be sure that it is gone"
	TextThrottled      = "Too many requests"
	TextFaulty         = "server %s ended in state ERROR"
	TextUpdateIgnored  = "NIC %s does not carry the allowedAddresses after its update"
	TextPanic          = "the driver failed unexpectedly"
)

// Fields that errors name, beside those of packages apis and validation.
var (
	classProviderPath = field.NewPath("machineClass", "provider")
	machineNamePath   = field.NewPath("machine", "metadata", "name")
)

// TextClassProvider and TextMachineName begin the errors about these fields.
var (
	TextClassProvider = classProviderPath.String()
	TextMachineName   = machineNamePath.String()
)

// misleadingWords in the API's messages would make Gardener take an error for one of
// another class, which its code is not.
var (
	misleadingWords = regexp.MustCompile(`(?i)conflict|notfound|unauthorized|internal server error`)
	plainWords      = map[string]string{"conflict": "clash", "notfound": "not found",
		"unauthorized": "not authenticated"}
)

// withoutMisleadingWords replaces them in a message of the API. The driver's own texts
// have none, and the names in them must stay as they are.
func withoutMisleadingWords(message string) string {
	return misleadingWords.ReplaceAllStringFunc(message, func(word string) string {
		return cmp.Or(plainWords[strings.ToLower(word)], "error inside the API")
	})
}
