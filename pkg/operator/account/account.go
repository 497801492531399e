// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package account provides what the mcm-stackit commands share: access to clusters, Secrets and projects, and the
// definition of an orphan.
package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	sdkruntime "github.com/stackitcloud/stackit-sdk-go/core/runtime"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Access holds the clusters, credentials and sessions that the commands share.
type Access struct {
	// Sessions opens the sessions with the IaaS API.
	Sessions *spi.PluginSPIImpl
	// Control is the cluster that holds the Machines; nil if it must not be read, or for ControlError cannot be.
	Control      client.Client
	ControlError error
	// Namespace is the namespace of the Machines, and of Secrets that are named without one.
	Namespace string
	// Target is the cluster that the machines join; nil if it must not be read.
	Target client.Client
	// SecretName names the Secret with the credentials, as "[namespace/]name"; "" means the Secrets of the classes.
	SecretName string
	// Direct holds credentials given without a Secret; nil if there are none.
	Direct *Direct
	// Region overrides the region of Secrets, classes and Direct; "" means unset.
	Region string
	// ReadTimeout limits one read of the API or a URL, retries included; 0 means a day.
	ReadTimeout time.Duration
	Clock       clock.Clock
}

// Direct is a project, a region and a key given by flags and variables, without a Secret.
type Direct struct {
	ProjectID, Region string
	// KeyPath is the file with the service-account key; "" if no key is needed.
	KeyPath string
	// Origin names the flags and variables that the values come from.
	Origin string
}

// Scheme returns a scheme with the types of the objects that the commands read from Control and
// Target.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// Account is a project and region with an open session.
type Account struct {
	Session *spi.Session
	Region  string
	// Secret holds the credentials as the driver receives them. It must never be printed.
	Secret *corev1.Secret
	// Origin describes where the credentials came from.
	Origin string
	// Classes are the classes of the cluster that use this account; empty if the user named the account.
	Classes []*Class

	access *Access
}

// String returns the account's project and region, as "project x in eu01".
func (a *Account) String() string {
	return fmt.Sprintf("project %s in %s", a.Session.ProjectID, a.Region)
}

// ErrNoCredentials means that neither the user's flags nor a MachineClass give credentials.
var ErrNoCredentials = errors.New("no credentials: set all of " + AllThree)

// AllThree lists, for messages, the flags that together give credentials without a Secret.
const AllThree = "--project-id, --region and --service-account-key-path"

// Accounts returns the accounts to work in, each once: the account that SecretName or Direct gives, else those of the
// STACKIT MachineClasses in the namespace ("" means all namespaces). problems has a *ClassError for each class with
// unusable credentials, beside the accounts of the other classes, or else the reason why no account can be determined.
func (o *Access) Accounts(ctx context.Context, namespace string) (accounts []*Account, problems []error) {
	if o.SecretName != "" || o.Direct != nil {
		named, err := o.namedAccount(ctx)
		if err != nil {
			return nil, []error{err}
		}
		return []*Account{named}, nil
	}
	if o.Control == nil {
		return nil, []error{cmp.Or(o.ControlError, ErrNoCredentials)}
	}
	classes, err := o.Classes(ctx, namespace)
	if err != nil {
		return nil, []error{err}
	}
	classes = slices.DeleteFunc(classes, (*Class).IsForeign)
	if len(classes) == 0 {
		return nil, []error{fmt.Errorf("there is no MachineClass of STACKIT: set another namespace with -n, or --secret; %w",
			ErrNoCredentials)}
	}
	for _, class := range classes {
		account, err := o.accountOf(ctx, class)
		if err != nil {
			problems = append(problems, &ClassError{class, err})
			continue
		}
		account.Classes = []*Class{class}
		accounts = Add(accounts, account)
	}
	return accounts, problems
}

// Add adds an account to others; of a session and region that they have already, only its classes.
func Add(others []*Account, made *Account) []*Account {
	for _, known := range others {
		if known.Session == made.Session && known.Region == made.Region {
			known.Classes = append(known.Classes, made.Classes...)
			return others
		}
	}
	return append(others, made)
}

// namedAccount returns the account of SecretName, or else of Direct.
func (o *Access) namedAccount(ctx context.Context) (*Account, error) {
	if o.SecretName == "" {
		return o.OpenDirect("")
	}
	key := o.NamedKey(o.SecretName)
	secret, err := o.Secret(ctx, key)
	if err != nil {
		return nil, err
	}
	return o.Open(secret, "", fmt.Sprintf("Secret %s (--secret)", key))
}

// ClassError means that the credentials of a class cannot be used.
type ClassError struct {
	Class *Class
	Err   error
}

func (e *ClassError) Error() string { return fmt.Sprintf("MachineClass %s: %v", e.Class.Name, e.Err) }

func (e *ClassError) Unwrap() error { return e.Err }

// accountOf returns the account in which the driver works for a class.
func (o *Access) accountOf(ctx context.Context, class *Class) (*Account, error) {
	if err := o.ReadSecrets(ctx, class); err != nil {
		return nil, err
	}
	return o.Open(class.Secret(), class.Inputs.Spec.Region, "the Secret of "+class.Subject())
}

// OpenDirect opens a session with the credentials in Direct, which must not be nil. region is the
// class's region, used unless Access.Region is set; if both are "", Direct's region is used.
func (o *Access) OpenDirect(region string) (*Account, error) {
	secret := &corev1.Secret{Data: map[string][]byte{
		apis.SecretProjectID: []byte(o.Direct.ProjectID), apis.SecretRegion: []byte(o.Direct.Region),
	}}
	if o.Direct.KeyPath != "" {
		key, err := os.ReadFile(o.Direct.KeyPath)
		if err != nil {
			return nil, fmt.Errorf("reading the service-account key: %w", err)
		}
		secret.Data[apis.SecretServiceAccountKey] = key
	}
	return o.Open(secret, region, o.Direct.Origin)
}

// Open opens a session with the Secret's credentials. region is the class's region, used unless
// Access.Region is set; if both are "", the Secret's region is used. origin becomes the account's Origin.
func (o *Access) Open(secret *corev1.Secret, region, origin string) (*Account, error) {
	decoded, errs := apis.DecodeSecret(secret.Data)
	errs = append(errs, validation.ValidateSecret(decoded, apis.SecretPath)...)
	region = cmp.Or(o.Region, region, decoded.Region)
	errs = append(errs, validation.ValidateRegion(region, field.NewPath("region"))...)
	if err := errs.ToAggregate(); err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	session, err := o.Sessions.Session(provider.Credentials(decoded))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	return &Account{Session: session, Region: region, Secret: secret, Origin: origin, access: o}, nil
}

// ErrNoSecret means that a Secret does not exist where the sidecar would read it, in the class's
// namespace of the control cluster, or that no control cluster was read.
var ErrNoSecret = errors.New("does not exist")

// Secret reads a Secret of the control cluster. The error wraps ErrNoSecret if the Secret does not
// exist, or if Control is nil.
func (o *Access) Secret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	if o.Control == nil {
		return nil, fmt.Errorf("Secret %s %w for this command, which reads no cluster", key, ErrNoSecret)
	}
	secret := &corev1.Secret{}
	switch err := o.Control.Get(ctx, key, secret); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("Secret %s %w", key, ErrNoSecret)
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return secret, nil
}

// ReadSecrets reads the Secrets of a class, and decodes it with them. The sidecar reads only Secrets of the class's
// namespace. The manager skips a missing Secret; here it is an error, because its content is unknown.
func (o *Access) ReadSecrets(ctx context.Context, class *Class) error {
	var secrets []*corev1.Secret
	for _, ref := range SecretRefs(class.MachineClass) {
		if ref.Namespace != class.Namespace {
			return fmt.Errorf("Secret %s/%s %w for the sidecar, which reads only Secrets of its own namespace, %s",
				ref.Namespace, ref.Name, ErrNoSecret, class.Namespace)
		}
		secret, err := o.Secret(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
		if err != nil {
			return err
		}
		secrets = append(secrets, secret)
	}
	*class = *NewClass(class.MachineClass, secrets...)
	return nil
}

// NamedKey parses "name" or "namespace/name"; without a namespace, Access.Namespace counts.
func (o *Access) NamedKey(name string) client.ObjectKey {
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		return client.ObjectKey{Namespace: namespace, Name: rest}
	}
	return client.ObjectKey{Namespace: o.Namespace, Name: name}
}

// SecretRefs returns a class's secretRef and credentialsSecretRef, in this order, without nil ones.
// If both Secrets have a key, the value of the last Secret counts.
func SecretRefs(class *v1alpha1.MachineClass) []*corev1.SecretReference {
	return slices.DeleteFunc([]*corev1.SecretReference{class.SecretRef, class.CredentialsSecretRef},
		func(ref *corev1.SecretReference) bool { return ref == nil })
}

// Class is a MachineClass with its Secrets.
type Class struct {
	*v1alpha1.MachineClass
	// Secrets are the class's Secrets in the order in which the manager merges them; nil if any of them is unknown.
	Secrets []*corev1.Secret
	// Inputs are the class and its Secrets as the driver decodes them.
	Inputs *provider.Inputs
}

// NewClass decodes a MachineClass with its Secrets; none if they are unknown.
func NewClass(class *v1alpha1.MachineClass, secrets ...*corev1.Secret) *Class {
	made := &Class{MachineClass: class, Secrets: secrets}
	made.Inputs = provider.Inspect(class, made.Secret())
	return made
}

// Secret returns one Secret with the data of all, as the manager merges them: the last value of a key counts (v0.62.1
// machine_util.go:97, 225).
func (c *Class) Secret() *corev1.Secret {
	merged := &corev1.Secret{Data: map[string][]byte{}}
	for _, secret := range c.Secrets {
		maps.Copy(merged.Data, secret.Data)
		for key, value := range secret.StringData {
			merged.Data[key] = []byte(value)
		}
	}
	return merged
}

// Subject returns the name of the class for findings: "MachineClass namespace/name".
func (c *Class) Subject() string {
	return report.OneLine(fmt.Sprintf("MachineClass %s/%s", c.Namespace, c.Name))
}

// IsForeign reports whether the class belongs to another provider. A class without a provider is
// STACKIT's.
func (c *Class) IsForeign() bool {
	return c.Provider != "" && c.Provider != provider.StackitProviderName
}

// Classes lists the MachineClasses of the namespace, also those of other providers; "" means all
// namespaces. It returns ErrNoMachines if the cluster does not have the manager's CRDs. Secrets are not read.
func (o *Access) Classes(ctx context.Context, namespace string) ([]*Class, error) {
	var list v1alpha1.MachineClassList
	err := o.list(ctx, "MachineClasses", namespace, &list)
	var classes []*Class
	for i := range list.Items {
		classes = append(classes, NewClass(&list.Items[i]))
	}
	return classes, err
}

// Machines lists the Machines of the namespace; "" means all namespaces. Its errors are those of
// Classes.
func (o *Access) Machines(ctx context.Context, namespace string) ([]v1alpha1.Machine, error) {
	var list v1alpha1.MachineList
	err := o.list(ctx, "Machines", namespace, &list)
	return list.Items, err
}

func (o *Access) list(ctx context.Context, what, namespace string, into client.ObjectList) error {
	err := o.Control.List(ctx, into, client.InNamespace(namespace))
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err): // of a list: the API server does not have the kind
		return ErrNoMachines
	}
	return fmt.Errorf("listing %s: %w", what, err)
}

// ErrNoMachines means that the manager's CRDs are not installed in a cluster.
var ErrNoMachines = errors.New("the resource Machine does not exist in this cluster: " +
	"it may be the cluster that the machines join; use the cluster with the Machines, in Gardener the seed")

// Bounded returns a context that ends after ReadTimeout.
func (o *Access) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(o.ReadTimeout, 24*time.Hour))
}

// Read makes one read of the API, under the session's rate limit for reads. ReadTimeout does not
// include the wait for that limit.
func Read[T any](ctx context.Context, account *Account, call func(context.Context) (T, error)) (T, error) {
	if err := account.Session.Reads.Wait(ctx); err != nil {
		var none T
		return none, err
	}
	ctx, cancel := account.access.Bounded(ctx)
	defer cancel()
	return call(ctx)
}

// Ask runs call, a read that the driver's client does not offer, under the limits of Read. It returns
// the value and the time in the answer's Date header; the zero time if there was no answer. Errors
// look like those of the driver's reads; what names the resource in them.
func Ask[T any](
	ctx context.Context, account *Account, what string, call func(context.Context) (T, error),
) (value T, date time.Time, err error) {
	var response *http.Response
	value, err = Read(sdkruntime.WithCaptureHTTPResponse(ctx, &response), account, call)
	if response != nil {
		date, _ = http.ParseTime(response.Header.Get("Date"))
	}
	if err != nil {
		err = provider.NewAPIError("reading "+what, response, err)
	}
	return value, date, err
}

// Status returns the HTTP status of a *provider.APIError in err; 0 if there is none, or if the API did
// not answer.
func Status(err error) int {
	var api *provider.APIError
	if !errors.As(err, &api) {
		return 0
	}
	return api.Status()
}

// Servers lists the account's servers that carry all labels; nil means all servers.
func (a *Account) Servers(ctx context.Context, labels map[string]string) ([]provider.Server, error) {
	client := provider.NewClient(a.Session, a.Region)
	return Read(ctx, a, func(ctx context.Context) ([]provider.Server, error) { return client.ListServers(ctx, labels) })
}

// Server reads one server of the account. provider.IsNotFound reports whether the error means that
// the API has no such server.
func (a *Account) Server(ctx context.Context, id string) (*provider.Server, error) {
	client := provider.NewClient(a.Session, a.Region)
	return Read(ctx, a, func(ctx context.Context) (*provider.Server, error) { return client.GetServer(ctx, id) })
}

// Addresses returns the IP addresses of a server's NICs, which may be none, and the zero Addr for a NIC without one.
// date is the Date of the API's answer; the zero time without one.
func (a *Account) Addresses(ctx context.Context, serverID string) (addresses []netip.Addr, date time.Time, err error) {
	nics, date, err := Ask(ctx, a, "the server's NICs", func(ctx context.Context) (*iaas.NICListResponse, error) {
		return a.Session.API.ListServerNICs(ctx, a.Session.ProjectID, a.Region, serverID).Execute()
	})
	if err != nil {
		return nil, date, err
	}
	for i := range nics.GetItems() {
		nic := &nics.GetItems()[i]
		if nic.GetIpv4()+nic.GetIpv6() == "" {
			addresses = append(addresses, netip.Addr{})
		}
		for _, text := range []string{nic.GetIpv4(), nic.GetIpv6()} {
			address, err := netip.ParseAddr(text)
			switch {
			case err == nil:
				addresses = append(addresses, address.Unmap().WithZone(""))
			case text != "":
				return nil, date, fmt.Errorf("NIC %s has an address that is not an IP address: %w", nic.GetId(), err)
			}
		}
	}
	return addresses, date, nil
}

// consoleLines is how many lines of a console log are read, from its end.
const consoleLines = 50

// ConsoleLog returns the last 50 lines of a server's console log, as the server wrote them: they may contain control
// characters and secrets. Of an empty log it returns one empty line.
func (a *Account) ConsoleLog(ctx context.Context, serverID string) ([]string, error) {
	log, _, err := Ask(ctx, a, "the server's console log",
		func(ctx context.Context) (*iaas.GetServerLog200Response, error) {
			return a.Session.API.GetServerLog(ctx, a.Session.ProjectID, a.Region, serverID).Length(consoleLines).Execute()
		})
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimRight(log.GetOutput(), "\r\n"), "\n"), nil
}

// Failure returns an API error with the account's Origin and the text of Judge.
func (a *Account) Failure(err error) error {
	_, text := Judge(err)
	return fmt.Errorf("%s: %s", a.Origin, text)
}

// Judge returns the verdict about an error of the API or the token endpoint, and the error text that the manager would
// get, which begins with the driver's reason, followed by the runbook's remedy for that reason. Credentials that were
// refused, or lack a permission, are Wrong; all else is Unknown.
func Judge(err error) (verdict report.Verdict, text string) {
	_, text = provider.Classify(err)
	reason := provider.ReasonIn(text)
	if row := report.RowOf(string(reason)); row.Remedy != "" {
		text += "; " + row.Remedy
	}
	if reason == provider.ReasonCredentialsRefused || reason == provider.ReasonNoPermission {
		return report.Wrong, text
	}
	return report.Unknown, text
}

// keyExpiresSoon is how long before its expiry a key should be replaced.
const keyExpiresSoon = 14 * 24 * time.Hour

// CheckKey returns findings about a service-account key that is inactive according to its file, has
// expired, expires within 14 days, or belongs to a project other than projectID. The caller must set
// the Subject of each.
func CheckKey(key *spi.Key, projectID string, now time.Time) (found report.Findings) {
	add := func(verdict report.Verdict, text string) {
		found = append(found, report.Finding{Verdict: verdict, Found: text})
	}
	const renew = "; create a new key of the service account, and put its JSON into the Secret"
	left, end := key.ValidUntil.Sub(now), key.ValidUntil.UTC().Format(time.DateTime)
	switch {
	case key.Inactive:
		add(report.Wrong, "is inactive according to its file"+renew)
	case key.ValidUntil.IsZero():
	case left <= 0:
		add(report.Wrong, "expired at "+end+" UTC"+renew)
	case left < keyExpiresSoon:
		add(report.Hint, "expires at "+end+" UTC"+renew)
	}
	if key.ProjectID != "" && validation.IsUUID(projectID) && !strings.EqualFold(key.ProjectID, projectID) {
		add(report.Hint, fmt.Sprintf("belongs to a service account of another project, %.40q", key.ProjectID))
	}
	return found
}
