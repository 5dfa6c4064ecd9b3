#include "tls/kerberos_realm.hpp"

#include <zkasio/testing/ensemble.hpp>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace zkasio::test {
namespace {

constexpr const char* kdc_program = "/usr/sbin/krb5kdc";

bool accepts_connections(std::uint16_t port) {
    const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    const bool accepts = ::connect(s, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
    ::close(s);
    return accepts;
}

}  // namespace

std::string kerberos_realm::impossible() {
    for (const char* program : {kdc_program, "/usr/sbin/kadmin.local", "/usr/sbin/kdb5_util", "/usr/bin/kinit"})
        if (!std::filesystem::exists(program)) return std::string("no ") + program;
    return "";
}

kerberos_realm::kerberos_realm() : port_(testing::free_port()) {
    std::ofstream(config()) << "[libdefaults]\n default_realm = ZKASIO.TEST\n dns_lookup_kdc = false\n"
                            << " dns_lookup_realm = false\n rdns = false\n dns_canonicalize_hostname = false\n"
                            << " udp_preference_limit = 1\n ticket_lifetime = 1h\n clockskew = 5\n"
                            << "[realms]\n ZKASIO.TEST = {\n  kdc = 127.0.0.1:" << port_ << "\n }\n";
    std::ofstream(files_ / "kdc.conf") << "[kdcdefaults]\n kdc_listen = 127.0.0.1:" << port_
                                       << "\n kdc_tcp_listen = 127.0.0.1:" << port_ << "\n"
                                       << "[realms]\n ZKASIO.TEST = {\n  database_name = " << files_ / "db"
                                       << "\n  key_stash_file = " << files_ / "stash" << "\n  acl_file = "
                                       << files_ / "acl" << "\n  supported_enctypes = aes256-cts:normal\n }\n"
                                       << "[logging]\n kdc = FILE:" << files_ / "kdc.log" << "\n";
    ::setenv("KRB5_CONFIG", config().c_str(), 1);
    ::setenv("KRB5_KDC_PROFILE", (files_ / "kdc.conf").c_str(), 1);
    ::setenv("KRB5CCNAME", ("FILE:" + files_ / "tickets").c_str(), 1);
    run("kdb5_util create -s -r ZKASIO.TEST -P master");
    run("kadmin.local -q 'addprinc -pw wonder alice'");
    run("kadmin.local -q 'addprinc -randkey zookeeper/localhost'");
    run("kadmin.local -q 'ktadd -k " + keytab() + " zookeeper/localhost'");
    std::vector<std::string> args{kdc_program, "-n", "-r", "ZKASIO.TEST", "-P", files_ / "kdc.pid"};
    std::vector<char*> argv;
    for (std::string& a : args) argv.push_back(a.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t quiet;
    ::posix_spawn_file_actions_init(&quiet);
    ::posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&quiet, 1, 2);
    const int failed = ::posix_spawn(&kdc_, argv[0], &quiet, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&quiet);
    if (failed != 0) throw std::runtime_error("the KDC does not start");
    for (int i = 0; i < 1000 && !accepts_connections(port_); ++i) ::poll(nullptr, 0, 10);
    if (!accepts_connections(port_)) throw std::runtime_error("the KDC does not answer");
}

kerberos_realm::~kerberos_realm() {
    if (kdc_ > 0) {
        ::kill(kdc_, SIGKILL);
        ::waitpid(kdc_, nullptr, 0);
    }
    for (const char* name : {"KRB5_CONFIG", "KRB5_KDC_PROFILE", "KRB5CCNAME"}) ::unsetenv(name);
}

void kerberos_realm::run(const std::string& command) const {
    const std::string log = files_ / "command.log";
    if (std::system(("PATH=\"$PATH:/usr/sbin:/sbin\"; { " + command + "; } > " + log + " 2>&1").c_str()) == 0) return;
    std::ifstream said(log);
    throw std::runtime_error(command + ": " +
                             std::string(std::istreambuf_iterator<char>(said), std::istreambuf_iterator<char>()));
}

void kerberos_realm::log_in(const std::string& options) const { run("echo wonder | kinit " + options + " alice"); }

void kerberos_realm::log_out() const { run("kdestroy -q || true"); }

void kerberos_realm::pause_kdc() const { ::kill(kdc_, SIGSTOP); }

void kerberos_realm::resume_kdc() const { ::kill(kdc_, SIGCONT); }

}  // namespace zkasio::test
