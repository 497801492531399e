// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
)

const (
	// exhaustedFor is how long a class that ran out of quota or capacity, or whose machine type
	// does not exist, is answered so again without a POST: every event of a class makes the manager
	// call for all of its machines, whatever its retry period.
	exhaustedFor = time.Minute
	// unlabelledFor is how long the other machines of a class get no server after one showed no
	// labels: an API that drops them must not fill a project with servers that nobody finds.
	unlabelledFor = time.Hour
)

// classErrors remember why servers of a class are not asked for.
type classErrors = recent.Map[classKey, classError]

// classKey names a class across sessions, where it matters with the providerSpec that was refused:
// another may be served.
type classKey struct {
	endpoint, projectID, region, class string
	spec                               [sha256.Size]byte
}

// classError is what a class's machines are answered, and until when.
type classError struct {
	err   error
	until time.Time
	// machine and server are those of which the server shows no labels.
	machine, server string
}

func (c *call) classKey() classKey {
	return classKey{endpoint: c.key.Endpoint, projectID: c.key.ProjectID, region: c.key.Region, class: c.class}
}

func (c *call) specKey() classKey {
	key := c.classKey()
	key.spec = sha256.Sum256(c.rawSpec)
	return key
}

// isExhausted says that an error is about quota, capacity or a machine type that does not exist.
func isExhausted(err error) bool {
	if err == nil {
		return false
	}
	code, _ := classify(err)
	return code == codes.ResourceExhausted
}

// noteExhausted remembers the error if it says that something is exhausted.
func (c *call) noteExhausted(err error) {
	if isExhausted(err) {
		c.exhausted.Set(c.specKey(), classError{err: err, until: c.clock.Now().Add(exhaustedFor)})
	}
}

// checkExhausted returns the error that the class ran out with, if it still holds.
func (c *call) checkExhausted() error {
	if found, ok := c.exhausted.Lookup(c.specKey()); ok && c.clock.Now().Before(found.until) {
		return found.err
	}
	return nil
}

// labelsMissing is the answer about a server that the answer to the machine's POST named: it has
// the machine's name, and no machine label, though look-ups should find it by now. It may be
// anybody's, and is neither used nor deleted.
func (c *call) labelsMissing(server *Server) error {
	labels := labelSelector(c.serverLabels(c.cluster))
	// The hour begins when the server is first seen so, not with each call of its machine.
	if known, ok := c.unlabelled.Lookup(c.classKey()); !ok || known.server != server.ID {
		c.unlabelled.Set(c.classKey(), classError{
			err: newError(ReasonLabelsMissing, fmt.Sprintf(
				"server %s was created for machine %s without its labels: MachineClass %s gets no other servers for an hour; "+
					"only if it is that machine's, set %s on it, else rename it", server.ID, c.machine, c.class, labels)),
			until: c.clock.Now().Add(unlabelledFor), machine: c.machine, server: server.ID,
		})
	}
	return newError(ReasonLabelsMissing, fmt.Sprintf(
		"server %s has the name of machine %s and no machine label: only if it is this machine's, set %s on it; "+
			"if it is not, rename it", server.ID, c.machine, labels))
}

// checkUnlabelled returns an error if a server of another machine of the class shows no labels.
func (c *call) checkUnlabelled() error {
	found, ok := c.unlabelled.Lookup(c.classKey())
	if ok && c.clock.Now().Before(found.until) && found.machine != c.machine {
		return found.err
	}
	return nil
}
