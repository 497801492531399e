// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/manifest"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Account is a project and region, with a session to work there.
type Account struct {
	Session *spi.Session
	Region  string
	// Secret has the credentials, as the driver is given them. It must never be shown.
	Secret *corev1.Secret
	// Origin says where the credentials came from: "Secret default/stackit-credentials".
	Origin string
	// Classes are those of the cluster that name this account; none if it was named itself.
	Classes []*v1alpha1.MachineClass

	// readTimeout is the Access's.
	readTimeout time.Duration
}

// ErrNoCredentials says that nothing names a project, region and key.
var ErrNoCredentials = errors.New("no credentials: name a Secret with --secret or -f, or set all of " + AllThree)

// AllThree are the flags and variables that name an account without a Secret.
const AllThree = "--project-id ($STACKIT_PROJECT_ID), --region ($STACKIT_REGION) and --service-account-key-path ($STACKIT_SERVICE_ACCOUNT_KEY_PATH)"

// Accounts returns the accounts to work in: the one that is named (by SecretName, the one
// Secret among the manifests, overrides and the environment if they name a whole one), else
// those of all MachineClasses in Namespace. Equal ones are returned once. A class whose
// credentials cannot be used is among the problems: the other accounts are returned beside it.
func (o *Access) Accounts(ctx context.Context) (accounts []*Account, problems []error) {
	secret, origin, err := o.NamedSecret(ctx)
	if err != nil {
		return nil, []error{err}
	}
	if secret != nil {
		account, err := o.Open(secret, "", origin)
		if err != nil {
			return nil, []error{err}
		}
		return []*Account{account}, nil
	}
	if o.Control == nil {
		return nil, []error{ErrNoCredentials}
	}
	classes, err := o.Classes(ctx, o.Namespace)
	if err != nil {
		return nil, []error{err}
	}
	if len(classes) == 0 {
		return nil, []error{fmt.Errorf("namespace %s has no MachineClass: name another with -n; %w", o.Namespace, ErrNoCredentials)}
	}
	return o.AccountsOf(ctx, classes)
}

// AccountsOf returns the accounts of the classes, each once.
func (o *Access) AccountsOf(ctx context.Context, classes []*v1alpha1.MachineClass) (accounts []*Account, problems []error) {
	for _, class := range classes {
		account, err := o.accountOf(ctx, class)
		if err != nil {
			problems = append(problems, &ClassError{class, err})
			continue
		}
		same := slices.IndexFunc(accounts, func(other *Account) bool {
			return other.Session == account.Session && other.Region == account.Region
		})
		if same < 0 {
			accounts = append(accounts, account)
			continue
		}
		accounts[same].Classes = append(accounts[same].Classes, class)
	}
	return accounts, problems
}

// ClassError says that a class's credentials cannot be used.
type ClassError struct {
	Class *v1alpha1.MachineClass
	Err   error
}

func (e *ClassError) Error() string { return fmt.Sprintf("MachineClass %s: %v", e.Class.Name, e.Err) }

func (e *ClassError) Unwrap() error { return e.Err }

// accountOf returns the account in which the driver works for a class; overrides beat its
// Secrets, and Overrides.Region its providerSpec.
func (o *Access) accountOf(ctx context.Context, class *v1alpha1.MachineClass) (*Account, error) {
	secret, err := o.SecretOf(ctx, class)
	if err != nil {
		return nil, err
	}
	origin := strings.Join(append(SecretNames(class), "of MachineClass "+class.Name), " ")
	account, err := o.Open(secret, cmp.Or(o.Overrides.Region.Value, provider.Inspect(class, secret).Spec.Region), origin)
	if err != nil {
		return nil, err
	}
	account.Classes = []*v1alpha1.MachineClass{class}
	return account, nil
}

// NamedSecret returns the Secret that the user names; nil if none is named.
func (o *Access) NamedSecret(ctx context.Context) (*corev1.Secret, string, error) {
	if o.SecretName != "" {
		key := o.NamedKey(o.SecretName)
		secret, err := o.Secret(ctx, key)
		return secret, fmt.Sprintf("Secret %s (--secret)", key), err
	}
	var given []*manifest.Manifest
	for _, manifest := range o.Manifests {
		if manifest.IsSecret() {
			given = append(given, manifest)
		}
	}
	switch {
	case len(given) == 1:
		secret, err := given[0].Secret()
		return secret, fmt.Sprintf("Secret %s/%s of %s", given[0].Namespace, given[0].Name, given[0].File), err
	case len(given) > 1 && o.Control == nil:
		return nil, "", errors.New("the files have several Secrets: name the one with the credentials with --secret")
	case !o.Overrides.Region.IsSet() && !o.Environment.Region.IsSet():
		return nil, "", nil
	default:
		return o.SecretOfEnvironment()
	}
}

// SecretOfEnvironment returns what the environment says, if it and the overrides together
// name a project and a key; else nil. A key of the overrides needs none of the environment.
func (o *Access) SecretOfEnvironment() (*corev1.Secret, string, error) {
	environment := o.Environment
	hasProject := o.Overrides.ProjectID.IsSet() || environment.ProjectID.IsSet()
	hasKey := o.NoAuth || o.Overrides.ServiceAccountKey.IsSet() || environment.ServiceAccountKey.IsSet()
	if !hasProject || !hasKey {
		return nil, "", nil
	}
	if o.Overrides.ServiceAccountKey.IsSet() {
		environment.ServiceAccountKey = Override{}
	}
	secret, origins, err := environment.apply(&corev1.Secret{})
	return secret, strings.Join(append([]string{"no Secret"}, origins...), ", "), err
}

// Open opens the session. region "" means the Secret's.
func (o *Access) Open(secret *corev1.Secret, region, origin string) (*Account, error) {
	secret, overridden, err := o.Overrides.apply(secret)
	if err != nil {
		return nil, err
	}
	origin = strings.Join(append([]string{origin}, overridden...), ", ")
	decoded, errs := apis.DecodeSecret(secret.Data)
	errs = append(errs, validation.ValidateSecret(decoded, apis.SecretPath)...)
	if region = cmp.Or(region, decoded.Region); region == "" {
		errs = append(errs, field.Required(field.NewPath("region"), "set it in the MachineClass or the Secret, or with --region"))
	} else {
		errs = append(errs, validation.ValidateRegion(region, field.NewPath("region"))...)
	}
	if err := errs.ToAggregate(); err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	session, err := o.SessionWith(decoded)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	o.note(fmt.Sprintf("credentials for project %s in %s: %s", decoded.ProjectID, region, origin))
	return &Account{Session: session, Region: region, Secret: secret, Origin: origin, readTimeout: o.ReadTimeout}, nil
}

// SessionWith makes the session, or returns the one there is, with the credentials of a Secret.
// No call of the API is made.
func (o *Access) SessionWith(secret *apis.Secret) (*spi.Session, error) {
	return o.Sessions.Session(provider.Credentials(secret))
}
