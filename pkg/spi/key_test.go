// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"math/rand"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Where a private key's numbers have its modulus, its private exponent and its coefficient,
// and how many of them are needed: the others follow from these, which takes long.
const (
	modulus     = 1
	exponent    = 3
	needed      = 6
	coefficient = 8
)

// numbersOf returns the numbers of a private key, as PKCS #1 has them, for a modulus of that
// many bits. Its factors are no primes: nobody finds that out in a short time.
func numbersOf(bits int) []*big.Int {
	random, one, e := rand.New(rand.NewSource(1)), big.NewInt(1), big.NewInt(65537)
	factor := func(bits int) (factor, less *big.Int) {
		for {
			factor = new(big.Int).Rand(random, new(big.Int).Lsh(one, uint(bits-2)))
			for _, bit := range []int{0, bits - 2, bits - 1} {
				factor.SetBit(factor, bit, 1)
			}
			less = new(big.Int).Sub(factor, one)
			if new(big.Int).GCD(nil, nil, e, less).Cmp(one) == 0 {
				return factor, less
			}
		}
	}
	p, pLess := factor(bits / 2)
	q, qLess := factor(bits - bits/2)
	for new(big.Int).GCD(nil, nil, p, q).Cmp(one) != 0 {
		q, qLess = factor(bits - bits/2)
	}
	d := new(big.Int).ModInverse(e, new(big.Int).Mul(pLess, qLess))
	return []*big.Int{new(big.Int), new(big.Int).Mul(p, q), e, d, p, q,
		new(big.Int).Mod(d, pLess), new(big.Int).Mod(d, qLess), new(big.Int).ModInverse(q, p)}
}

// with returns the numbers with another one in its place.
func with(numbers []*big.Int, place int, number *big.Int) []*big.Int {
	numbers = slices.Clone(numbers)
	numbers[place] = number
	return numbers
}

// keyOf is a service-account key with a private key, whose numbers or DER are given.
func keyOf(t testing.TB, private any) string {
	t.Helper()
	der, isDER := private.([]byte)
	var err error
	if !isDER {
		if der, err = asn1.Marshal(private); err != nil {
			t.Fatal(err)
		}
	}
	const id = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"
	key, err := json.Marshal(map[string]any{"id": id, "credentials": map[string]any{
		"iss": "a@b", "kid": "c", "sub": id, "privateKey": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}

// pkcs8 wraps the numbers of a key.
func pkcs8(t testing.TB, numbers []*big.Int) any {
	t.Helper()
	inner, err := asn1.Marshal(numbers)
	if err != nil {
		t.Fatal(err)
	}
	return struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       []byte
	}{0, pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, Parameters: asn1.NullRawValue}, inner}
}

// A key of 44,910 bits took 9 s to parse, and 21 s to sign with.
func TestAKeyOfAbsurdSizeIsRefusedAtOnce(t *testing.T) {
	const notUsable = "credentials.privateKey cannot be used, must be an RSA key in PEM form"
	absurd, usual := numbersOf(44_910), numbersOf(2048)
	for name, row := range map[string]struct{ key, says string }{
		"44,910 bits":               {keyOf(t, absurd[:needed]), "must have at most 16384"},
		"28,000 bits":               {keyOf(t, numbersOf(28_000)[:needed]), "an RSA modulus of 28000 bits"},
		"within 16 KiB":             {keyOf(t, with(usual, modulus, absurd[modulus])), "an RSA modulus of 44910 bits, must have 2048 to 8192"},
		"within 16 KiB, in PKCS #8": {keyOf(t, pkcs8(t, with(usual, modulus, absurd[modulus]))), "an RSA modulus of 44910 bits, must have 2048 to 8192"},
		"another number":            {keyOf(t, with(usual, exponent, absurd[modulus])), "a number of 44910 bits, must have at most 8192"},
		"a bit too many":            {keyOf(t, numbersOf(8193)), "an RSA modulus of 8193 bits"},
		"a bit too few":             {keyOf(t, pkcs8(t, numbersOf(2047))), "an RSA modulus of 2047 bits"},
		"too few numbers":           {keyOf(t, numbersOf(8192)[:needed]), "has 6 numbers, must have the 9 of an RSA key with two primes"},
		"three primes":              {keyOf(t, append(slices.Clone(usual), big.NewInt(3))), "has 10 numbers, must have the 9"},
		"900 kB of text":            {strings.Repeat("s3cr3t", 150_000), "has 900000 bytes, must have at most 16384"},
		"900 kB of brackets":        {strings.Repeat("[", 900_000), "has 900000 bytes, must have at most 16384"},
		"no PEM":                    {strings.ReplaceAll(keyOf(t, usual), "BEGIN", "BEGINN"), notUsable},
		"no DER":                    {keyOf(t, []byte("s3cr3t")), notUsable},
		"no numbers":                {keyOf(t, []*big.Int{}), notUsable},
		"no RSA key":                {keyOf(t, struct{ Version, Key []byte }{}), notUsable},
	} {
		t.Run(name, func(t *testing.T) {
			r := newVirtualRig(t)
			_, err := r.sessions.Session(Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: row.key})
			var unusable *CredentialsError
			if !errors.As(err, &unusable) || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("got %v, want a CredentialsError that says %q and shows nothing of the key", err, row.says)
			}
		})
	}
}

// BenchmarkAKeyOfAbsurdSize is how long it takes to refuse keys that took seconds to parse, or
// the tenth of one in every call.
func BenchmarkAKeyOfAbsurdSize(b *testing.B) {
	sessions, absurd, large := &PluginSPIImpl{}, numbersOf(28_000)[:needed], numbersOf(8192)
	for name, key := range map[string]string{
		"28,000 bits": keyOf(b, absurd), "900 kB": keyOf(b, absurd) + strings.Repeat(" ", 900_000),
		"too few numbers": keyOf(b, large[:needed]), "a wrong number": keyOf(b, with(large, coefficient, large[exponent])),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := sessions.Session(Credentials{ProjectID: testProject, ServiceAccountKey: key}); err == nil {
					b.Fatal("it is accepted")
				}
			}
			if each := b.Elapsed() / time.Duration(b.N); each > 10*time.Millisecond {
				b.Errorf("it takes %s, want at most 10ms", each)
			}
		})
	}
}

// The largest keys that are accepted, measured but not parsed.
func TestKeysOfUsualSizeAreAccepted(t *testing.T) {
	for _, bits := range []int{2048, 3072, 4096, 8192} {
		for form, key := range map[string]string{"PKCS #1": keyOf(t, numbersOf(bits)), "PKCS #8": keyOf(t, pkcs8(t, numbersOf(bits)))} {
			parsed, err := parseKey(key)
			if err != nil {
				t.Fatal(err)
			}
			if err := checkPrivateKey(privateKey(parsed)); err != nil {
				t.Errorf("%d bits in %s: %v", bits, form, err)
			}
		}
	}
}

// A key of 8,192 bits that cannot be used takes some milliseconds to find out, each time.
func TestOtherSecretsDoNotWaitForAKeyToBeRead(t *testing.T) {
	r := newVirtualRig(t)
	r.session()
	key := keyOf(t, with(numbersOf(8192), coefficient, big.NewInt(2)))
	const readers, reads = 8, 25
	var group sync.WaitGroup
	for i := range readers {
		slow := Credentials{ProjectID: strconv.Itoa(i), ServiceAccountKey: key}
		group.Go(func() {
			for range reads {
				if _, err := r.sessions.Session(slow); err == nil {
					t.Error("the key can be used")
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	for meanwhile := 0; ; meanwhile++ {
		select {
		case <-done:
			// One that waits for its turn has one for each reader's, at most.
			if meanwhile < 10*readers*reads {
				t.Errorf("another Secret had its session %d times while keys were read %d times, want at least 10 times as often", meanwhile, readers*reads)
			}
			return
		default:
			r.session()
		}
	}
}

// 200 rotations of a key of 900 kB kept 174 MiB for an hour.
func TestNoTextOfAKeyIsKept(t *testing.T) {
	for name, size := range map[string]int{"as large as may be": maxKey, "900 kB": 900_000} {
		t.Run(name, func(t *testing.T) {
			r := newVirtualRig(t)
			r.session()
			before := heapInUse()
			for i := range 200 {
				key := string(r.key) + strings.Repeat(" ", size-len(r.key)-i)
				_, _ = r.sessions.Session(Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: key})
			}
			if grown := int64(heapInUse()) - int64(before); grown > 2<<20 {
				t.Errorf("200 keys take %d KiB", grown>>10)
			}
			runtime.KeepAlive(r)
		})
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
