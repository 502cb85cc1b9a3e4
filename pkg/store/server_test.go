// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// endpoint is what a connection states about a server.
type endpoint struct {
	User, Passwd, Net, Addr, DBName string
	Timeout, Read, Write            time.Duration
}

func TestEveryFormOfAServersConnectionIsRead(t *testing.T) {
	const usual = 20 * time.Second
	for connection, want := range map[string]endpoint{
		"mysql+pymysql://almanac:s3cret@db.example/almanac":                       {"almanac", "s3cret", "tcp", "db.example:3306", "almanac", usual, usual, usual},
		"mysql://almanac@db:3307/almanac":                                         {"almanac", "", "tcp", "db:3307", "almanac", usual, usual, usual},
		"mysql+mysqldb://a%40b:p%2Fw%3A%23+1@[fd00::1]:3306/almanac?charset=utf8": {"a@b", "p/w:#+1", "tcp", "[fd00::1]:3306", "almanac", usual, usual, usual},
		"mariadb+pymysql://almanac:p/w:#?1@db/almanac?charset=utf8mb4":            {"almanac", "p/w:#?1", "tcp", "db:3306", "almanac", usual, usual, usual},
		"mysql+pymysql://almanac:x@db1,db2:3307,[fd00::1],[fd00::2]:3308/almanac": {
			"almanac", "x", "tcp", "db1:3306,db2:3307,[fd00::1]:3306,[fd00::2]:3308", "almanac", usual / 4, usual, usual},
		"mysql+pymysql://almanac:x@db1,db2/almanac?connect_timeout=3":            {"almanac", "x", "tcp", "db1:3306,db2:3306", "almanac", 3 * time.Second, usual, usual},
		"mysql+pymysql://root:x@127.0.0.1/almanac?charset=utf8&plugin=dbcounter": {"root", "x", "tcp", "127.0.0.1:3306", "almanac", usual, usual, usual},
		"mysql+pymysql:///almanac": {"", "", "tcp", "localhost:3306", "almanac", usual, usual, usual},
		"mysql+pymysql://almanac:x@/almanac?unix_socket=/run/mysqld/mysqld.sock": {"almanac", "x", "unix", "/run/mysqld/mysqld.sock", "almanac", usual, usual, usual},
		"mysql+pymysql://almanac:x@db/almanac?connect_timeout=3&read_timeout=4&write_timeout=5": {
			"almanac", "x", "tcp", "db:3306", "almanac", 3 * time.Second, 4 * time.Second, 5 * time.Second},
		"almanac:p@ss@tcp(db.example:3307)/almanac":                        {"almanac", "p@ss", "tcp", "db.example:3307", "almanac", usual, usual, usual},
		"almanac@unix(/run/mysqld/mysqld.sock)/almanac?parseTime=true":     {"almanac", "", "unix", "/run/mysqld/mysqld.sock", "almanac", usual, usual, usual},
		"almanac:x@tcp(db)/almanac?readTimeout=4s&timeout=3s&charset=utf8": {"almanac", "x", "tcp", "db:3306", "almanac", 3 * time.Second, 4 * time.Second, usual},
	} {
		at, err := parseConnection(connection)
		if err != nil {
			t.Errorf("%s: %v", connection, err)
			continue
		}
		c, addresses := at.(server).config, strings.Join(at.(server).addresses(), ",")
		if d := cmp.Diff(want, endpoint{c.User, c.Passwd, c.Net, addresses, c.DBName, c.Timeout, c.ReadTimeout, c.WriteTimeout}); d != "" {
			t.Errorf("%s (-want +got):\n%s", connection, d)
		}
		if text := at.String(); want.Passwd != "" && strings.Contains(text, want.Passwd) && len(want.Passwd) > 1 {
			t.Errorf("%s is named %s in logs", connection, text)
		}
	}
}

func TestAServersConnectionThatCannotBeReadIsInvalid(t *testing.T) {
	for connection, want := range map[string]string{
		"mysql+pymysql://almanac:s3cret@db":                                "connection: names no database: it must end in /DATABASE",
		"mysql+pymysql://almanac:s3cret@db:port/almanac":                   "connection: the port must be a number from 1 to 65535",
		"mysql+pymysql://almanac:s3cret@db:99999/almanac":                  "connection: the port must be a number from 1 to 65535",
		"mysql+pymysql://almanac:s3cret%@db/almanac":                       "connection: the user or the password has a broken escape; write %25 for a percent sign",
		"mysql+pymysql://[db/almanac":                                      "connection: must read mysql+pymysql://USER:PASSWORD@HOST:PORT/DATABASE; in a password, write %40 for an at sign",
		"mysql+pymysql://ada:s3@cret@db/almanac":                           "connection: must read mysql+pymysql://USER:PASSWORD@HOST:PORT/DATABASE; in a password, write %40 for an at sign",
		"mysql+pymysql://almanac:s3cret@db/almanac?charset=latin1":         "connection: charset must be utf8 or utf8mb4",
		"mysql+pymysql://almanac:s3cret@db/almanac?read_timeout=0":         "connection: read_timeout must be a number of seconds, at least 1",
		"mysql+pymysql://almanac:s3cret@db/almanac?readtimeout=5":          `connection: there is no option "readtimeout"; did you mean "read_timeout"?`,
		"mysql+pymysql://almanac:s3cret@db1,,db2/almanac":                  "connection: must read mysql+pymysql://USER:PASSWORD@HOST:PORT/DATABASE; in a password, write %40 for an at sign",
		"mysql+pymysql://almanac:s3cret@db1,db2:x/almanac":                 "connection: the port must be a number from 1 to 65535",
		"mysql+pymysql://ada:s3cret@db1,db2/almanac?unix_socket=/a":        "connection: unix_socket is one server; name no other hosts",
		"mysql+pymysql://almanac:s3cret@db/almanac?charset=%zz":            "connection: the options behind the question mark cannot be read",
		"mysql+pymysql://almanac:s3cret@db/almanac?ssl_ca=/nowhere":        "connection: ssl_ca: open /nowhere: no such file or directory",
		"mysql+pymysql://almanac:s3cret@db/almanac?ssl_check_hostname=off": "connection: ssl_check_hostname needs ssl_ca",
		"almanac:s3cret@tcp(db)/":                                          "connection: names no database: it must end in /DATABASE",
		"almanac:s3cret@tcp(db)/almanac?readTimeout=soon":                  "connection: is not in the form USER:PASSWORD@tcp(HOST:PORT)/DATABASE?OPTIONS, or an option has a wrong value",
		"almanac:s3cret@tcp(db)/almanac?read_timeout=5s":                   `connection: there is no option "read_timeout"; did you mean "readTimeout"?`,
	} {
		if err := Check(connection); !fault.Is(err, fault.Invalid) || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", connection, err, want)
		}
	}
}

func TestAnEncryptedConnectionVerifiesTheServer(t *testing.T) {
	cert, key := newCertificate(t)
	options := "mysql+pymysql://almanac:x@db/almanac?ssl_ca=" + cert
	for connection, anyName := range map[string]bool{
		options: false,
		options + "&ssl_cert=" + cert + "&ssl_key=" + key: false,
		options + "&ssl_verify_cert":                      false,
		options + "&ssl_check_hostname=false":             true,
	} {
		at, err := parseConnection(connection)
		if err != nil {
			t.Errorf("%s: %v", connection, err)
			continue
		}
		c := at.(server).config.TLS
		if c == nil || c.RootCAs == nil || c.InsecureSkipVerify != anyName || (c.VerifyConnection != nil) != anyName {
			t.Errorf("%s: the server is not verified: %+v", connection, c)
		}
		if want := strings.Contains(connection, "ssl_cert"); want != (len(c.Certificates) > 0) {
			t.Errorf("%s: has %d certificates of its own", connection, len(c.Certificates))
		}
	}
	for option, want := range map[string]string{
		"ssl_ca=" + key: "connection: ssl_ca: " + key + " has no certificate in PEM form",
		"ssl_ca=" + cert + "&ssl_check_hostname=maybe": "connection: ssl_check_hostname must be true or false",
		"ssl_ca=" + cert + "&ssl_verify_cert=false":    "connection: ssl_verify_cert must be true: Almanac always verifies the server's certificate",
	} {
		if err := Check("mysql+pymysql://almanac:x@db/almanac?" + option); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", option, err, want)
		}
	}
	if err := Check("mysql+pymysql://almanac:x@db/almanac?ssl_cert=" + cert); !fault.Is(err, fault.Invalid) {
		t.Errorf("a certificate without its key: %v", err)
	}
}

// newCertificate returns the files of a self-signed certificate and its key.
func newCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "PRIVATE KEY", encoded)
}
