"""zklock through TLS: a server behind a terminator that wants a certificate."""

import os
import socket
import ssl
import subprocess
import tempfile
import threading

import support


class Terminator:
    """Takes connections through TLS, with certificates of both sides, and leads them to a server."""

    def __init__(self, certificates):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificates.path("server.pem"), certificates.path("server.key"))
        self.context.load_verify_locations(certificates.path("ca.pem"))
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self.lead, args=(client,), daemon=True).start()

    def lead(self, client):
        host, port = support.SERVERS.split(",")[0].rsplit(":", 1)
        try:
            with self.context.wrap_socket(client, server_side=True) as near, \
                    socket.create_connection((host, int(port))) as far:
                back = threading.Thread(target=self.copy, args=(far, near), daemon=True)
                back.start()
                self.copy(near, far)
                far.shutdown(socket.SHUT_RDWR)
                back.join()
        except OSError:  # the handshake has failed, or the client is gone
            client.close()

    @staticmethod
    def copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:  # the other direction has ended
            pass

    def close(self):
        self.listener.close()


class Certificates:
    """An authority, and certificates that it has signed, made by the program openssl."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.make("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=authority", "-keyout",
                  self.path("ca.key"), "-out", self.path("ca.pem"))
        for name in ("server", "client"):
            self.make("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" + name, "-keyout",
                      self.path(name + ".key"), "-out", self.path(name + ".csr"))
            with open(self.path(name + ".ext"), "w") as f:
                f.write("subjectAltName=IP:127.0.0.1\n")
            self.make("x509", "-req", "-days", "1", "-in", self.path(name + ".csr"), "-CA", self.path("ca.pem"),
                      "-CAkey", self.path("ca.key"), "-CAcreateserial", "-extfile", self.path(name + ".ext"), "-out",
                      self.path(name + ".pem"))

    def make(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    def path(self, name):
        return os.path.join(self.directory.name, name)


class Tls(support.CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.certificates = Certificates()
        cls.addClassCleanup(cls.certificates.directory.cleanup)
        cls.server = Terminator(cls.certificates)
        cls.addClassCleanup(cls.server.close)

    def files(self, **changed):
        names = {"ca": "ca.pem", "cert": "client.pem", "key": "client.key", **changed}
        return {what: self.certificates.path(name) for what, name in names.items() if name}

    def options(self, **changed):
        return [word for what, file in self.files(**changed).items() for word in ("--tls-" + what, file)]

    def test_options(self):
        connect = ("--connect", self.server.address)
        self.assertEqual(self.zklock("create", *connect, *self.options(), self.path, "through")[0], 0)
        self.assertEqual(self.zklock("get", self.path)[1], "through")

    def test_environment(self):
        self.zklock("create", self.path, "through")
        environment = {"ZK_HOSTS": self.server.address}
        environment |= {"ZK_TLS_" + what.upper(): file for what, file in self.files().items()}
        self.assertEqual(self.zklock("get", self.path, environment=environment)[1], "through")
        status, out, _ = self.zklock("doctor", self.path, environment=environment)
        self.assertIn("versions are not asked for through TLS", out)
        self.assertEqual(status, 0, out)

    def test_without_a_certificate(self):
        status, _, err = self.zklock("get", "--connect", self.server.address, "--connect-timeout", "2s",
                                     *self.options(cert=None, key=None), self.path)
        self.assertEqual(status, 123)
        self.assertIn("this client has shown no certificate", err)

    def test_files_that_cannot_be_used(self):
        for changed, words in (({"ca": "none.pem"}, "none.pem"), ({"key": None}, "there is no key for the certificate")):
            status, _, err = self.zklock("get", "--connect", self.server.address, *self.options(**changed), self.path)
            self.assertEqual(status, 120, err)
            self.assertIn(words, err)


if __name__ == "__main__":
    support.main()
