"""zklock that logs in by SASL: a server that knows a user, one that has no SASL, and what is refused before that."""

import os
import subprocess
import tempfile

import support

SCRIPTS = os.path.join(os.environ["ZKLOCK_SOURCES"], "../../scripts")
SERVER, REALM = os.path.join(SCRIPTS, "zookeeper_server.sh"), os.path.join(SCRIPTS, "kerberos_realm.sh")
USERS = 'Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_alice="s3cret"; };'


class Sasl(support.CliTest):
    def file(self, text, mode=0o600):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, "password")
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def test_what_is_refused(self):
        for options, status, words in (
                (["--sasl-user", "alice"], 120, "--sasl-password-file"),
                (["--sasl-user", "alice", "--kerberos"], 120, "either"),
                (["--sasl-user", "alice", "--sasl-password-file", "/no/such/file"], 125, "/no/such/file"),
                (["--sasl-user", "alice", "--sasl-password-file", self.file("s3cret", 0o644)], 125, "chmod 600"),
                (["--sasl-user", "alice", "--sasl-password-file", self.file("")], 125, "no password")):
            got, _, err = self.zklock("ls", *options, "/")
            self.assertEqual(got, status, err)
            self.assertIn(words, err)
            self.assertNotIn("s3cret", err)

    def server(self, users=USERS, more=""):
        """The address of a server that demands a login."""
        users = self.file(users)
        [port] = support.free_ports(1)
        properties = (f"-Djava.security.auth.login.config={users} -Dzookeeper.sessionRequireClientSASLAuth=true {more} "
                      "-Dzookeeper.authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider")
        running = subprocess.Popen(["bash", SERVER, os.path.dirname(users), "127.0.0.1", str(port)],
                                   env={**os.environ, "JAVA_TOOL_OPTIONS": properties})
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return f"127.0.0.1:{port}"

    def realm(self):
        """A realm of the test's own, and a ticket of its user alice: its files, and what a program needs in its
        environment."""
        missing = subprocess.run(["bash", REALM, "--missing"], check=True, capture_output=True, text=True).stdout.strip()
        if missing:
            self.skipTest(f"no {missing}")
        files = os.path.dirname(self.file(""))
        [port] = support.free_ports(1)
        own = {"KRB5_CONFIG": f"{files}/krb5.conf", "KRB5CCNAME": f"FILE:{files}/tickets"}
        kdc = subprocess.Popen(["bash", REALM, files, str(port)])
        self.addCleanup(kdc.wait)
        self.addCleanup(kdc.kill)

        def has_ticket():
            self.assertIsNone(kdc.poll(), "the KDC has ended")
            return subprocess.run(["kinit", "alice"], input=b"wonder\n", env={**os.environ, **own},
                                  capture_output=True).returncode == 0

        self.eventually(has_ticket)
        return files, own

    def test_a_login_with_a_ticket(self):
        files, own = self.realm()
        users = ("Server { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
                 f'keyTab="{files}/keytab" storeKey=true useTicketCache=false '
                 'principal="zookeeper/localhost@ZKASIO.TEST"; };')
        address = self.server(users, f"-Djava.security.krb5.conf={files}/krb5.conf")
        at = ["--connect", address.replace("127.0.0.1", "localhost"), "--connect-timeout", "60s"]
        for options, more in ((["--kerberos"], {}), ([], {"ZK_KERBEROS": "1"})):
            status, out, err = self.zklock("whoami", *at, *options, environment={**own, **more})
            self.assertEqual(status, 0, err)
            self.assertIn("alice@ZKASIO.TEST", out)
        os.remove(f"{files}/tickets")
        status, _, err = self.zklock("whoami", *at[:2], "--connect-timeout", "3s", "--kerberos", environment=own)
        self.assertNotEqual(status, 0)
        self.assertIn("SASL: Kerberos: ", err)

    def test_a_login(self):
        options = ["--connect", self.server(), "--sasl-user", "alice", "--sasl-password-file"]
        status, out, err = self.zklock("whoami", "--connect-timeout", "60s", *options, self.file("s3cret\n"))
        self.assertEqual(status, 0, err)
        self.assertIn("alice", out)
        status, _, err = self.zklock("whoami", *options, self.file("wr0ng\n"))
        self.assertEqual(status, 123, err)
        self.assertNotIn("wr0ng", err)

    def test_a_server_without_it(self):
        environment = {"ZK_SASL_USER": "alice", "ZK_SASL_PASSWORD_FILE": self.file("s3cret\n")}
        status, _, err = self.zklock("ls", "/", environment=environment)
        self.assertEqual(status, 123)
        self.assertIn("SASL: the server does not offer it", err)
        self.assertNotIn("s3cret", err)


if __name__ == "__main__":
    support.main()
