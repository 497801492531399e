// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"regexp"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// Remedy is a row of the table of kubernetes/runbooks.md, "When a Machine does not come up".
type Remedy struct {
	// Cause is why a Machine does not come up, Remedy what to do about it.
	Cause, Remedy string

	// codes are those of the manager; none means that it said nothing at all.
	codes []codes.Code
	says  []saying
}

// saying is what a text may say.
type saying struct {
	// shown is how the table has it, in which … stands for any text.
	shown string
	// pattern is what to look for; nil means shown.
	pattern *regexp.Regexp
}

func (s saying) in(text string) bool {
	if s.pattern != nil {
		return s.pattern.MatchString(text)
	}
	for part := range strings.SplitSeq(s.shown, "…") {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// connectionError matches what Go's network packages say of a connection that failed.
var connectionError = regexp.MustCompile(`: (dial|read|write|remote error|local error): |\bEOF\b|connection reset|connection refused|TLS handshake`)

// remedyFor returns the first row that is about a code and text; nil if there is none.
func remedyFor(code codes.Code, text string) *Remedy {
	for i := range remedies {
		says := func(s saying) bool { return s.in(text) }
		if slices.Contains(remedies[i].codes, code) && slices.ContainsFunc(remedies[i].says, says) {
			return &remedies[i]
		}
	}
	return nil
}

// remedyForSilence returns the row about a Machine of which the manager says nothing.
func remedyForSilence() *Remedy { return &remedies[0] }

// verb is a place in a format of the driver's.
var verb = regexp.MustCompile(`%[qsd]`)

// row makes a row of the table; says are formats of the driver's texts, or texts of the API.
func row(cause, remedy string, code codes.Code, says ...string) Remedy {
	made := Remedy{Cause: cause, Remedy: remedy, codes: []codes.Code{code}}
	for _, format := range says {
		made.says = append(made.says, saying{shown: verb.ReplaceAllString(format, "…")})
	}
	return made
}

func (r Remedy) or(code codes.Code) Remedy {
	r.codes = append(r.codes, code)
	return r
}

// orMatches adds a saying that is no text but a kind of texts.
func (r Remedy) orMatches(shown string, pattern *regexp.Regexp) Remedy {
	r.says = append(r.says, saying{shown, pattern})
	return r
}

// remedies are the rows of the table in its order: the first that matches counts.
var remedies = []Remedy{
	{Cause: "the Secret, or its key userData, is missing",
		Remedy: "create it; the sidecar's log repeats userdata field not found"},
	row("wrong values; every field is named",
		"correct the MachineClass or the Secret",
		codes.InvalidArgument, apis.SpecPath.String()+".…", apis.SecretPath.String()+".…"),
	row("the disk has no size, or a smaller one than its image asks for",
		"set bootVolume.size",
		codes.InvalidArgument, "boot device size is not valid or missing"),
	row("a value that only the cloud can check",
		"correct what the message names",
		codes.InvalidArgument, provider.TextRefused),
	row("the class's machine type does not exist, or not in this region",
		"correct providerSpec.machineType; the class gets the same answer for 1 minute",
		codes.ResourceExhausted, provider.TextNoMachineType),
	row("an image, network, NIC or volume is not in this project and region, or a key pair is not one of the service account",
		"correct the ID; check region",
		codes.InvalidArgument, provider.TextMissing),
	row("the Secret now names another project",
		"restore the project: servers do not move",
		codes.InvalidArgument, providerid.TextOtherProject),
	row("the class is another provider's",
		"set provider: stackit, or leave it out",
		codes.InvalidArgument, provider.TextClassProvider),
	row("the name is too long for a server",
		"shorten the MachineDeployment's name",
		codes.InvalidArgument, provider.TextMachineName),
	row("the key is wrong, expired or revoked; or the workload identity's token is, or is not trusted",
		"put a valid service-account key or token into the Secret; check the service account's federated identity provider",
		codes.Unauthenticated, provider.TextCredentials),
	row("the service account may not do this in this project",
		"grant it these permissions (pkg/provider/apis/README.md); check that key and projectId belong together",
		codes.PermissionDenied, provider.TextForbidden),
	row("the project's quota is used up",
		"raise it, or scale something else down; the class gets the same answer for 1 minute",
		codes.ResourceExhausted, provider.TextQuota),
	row("no capacity for this machine type and zone",
		"another zone or machine type, or wait; the class gets the same answer for 1 minute",
		codes.ResourceExhausted, provider.TextNoHost),
	row("the service account's key or token was refused during a call",
		"put a valid one into the Secret",
		codes.Unavailable, provider.TextInterrupted),
	row("another call is creating this Machine's server",
		"nothing: the next call goes on",
		codes.Aborted, provider.TextAnotherCall),
	row("the server runs, its network is not ready",
		"nothing: the next call goes on",
		codes.Uninitialized, provider.TextNotAllowed, provider.TextNoAddress).or(codes.Unavailable),
	row("the server's labels name another machine or cluster",
		"restore the label the text names, or delete the server by hand if it is nobody's",
		codes.FailedPrecondition, provider.TextNotOurs),
	row("the Machine is marked as one from OpenStack, and no server has its name, or several have",
		"delete the Machine to have it replaced, or name its server by spec.providerID; one that never had a server is replaced at its creation timeout",
		codes.FailedPrecondition, provider.TextNotTakenOver),
	row("the Secret or class names another project or region than when the Machine's server was made",
		"restore them, or delete the Machine while they name the first one",
		codes.FailedPrecondition, provider.TextElsewhere),
	row("the class's label that ends in /cluster has a value that no server can carry, or none",
		"repair providerSpec.labels",
		codes.FailedPrecondition, provider.TextClusterUnknown),
	row("a NIC or volume of the class is attached elsewhere",
		"detach it: classes with nicIds or volumes serve one machine",
		codes.FailedPrecondition, provider.TextInUse),
	row("the answer to a request was lost; its result is looked for",
		"nothing",
		codes.DeadlineExceeded, provider.TextMayBeSent),
	row("the server boots or goes for longer than a call waits",
		"nothing: the next call goes on with it",
		codes.DeadlineExceeded, provider.TextLate),
	row("somebody deleted the server",
		"nothing: a new one is made",
		codes.Aborted, provider.TextDeletedUnderUs),
	row("the cloud is working on the server, or its deletion failed",
		"nothing at first; if it stays, ask STACKIT with the server's ID",
		codes.Aborted, provider.TextBusy, provider.TextTwoDeletes),
	row("a young server was not found",
		"nothing: its next status tells",
		codes.Unavailable, provider.TextTooYoung),
	row("the API has not shown yet what it made",
		"nothing: the next call looks again",
		codes.Unavailable, provider.TextUnlabelled, provider.TextOthersServer),
	row("the API is busy or out of order",
		"nothing at first; requestID in the sidecar's log is what support asks for",
		codes.Unavailable, provider.TextThrottled, "status 5…").orMatches("connection errors", connectionError),
	row("the API made the server without its labels",
		"ask STACKIT, if it happens again",
		codes.Internal, provider.TextLabelsDropped),
	row("the cloud could not make the server; it is deleted and made anew",
		"see the reason in the text",
		codes.Internal, provider.TextFaulty),
	row("the API took the update and did not do it",
		"ask STACKIT with the NIC's ID",
		codes.Internal, provider.TextUpdateIgnored),
	row("a bug of the driver",
		"report it with the stack from the sidecar's log",
		codes.Internal, provider.TextPanic),
}
