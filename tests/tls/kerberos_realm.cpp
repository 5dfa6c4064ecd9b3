#include "tls/kerberos_realm.hpp"

#include "support/source_dir.hpp"

#include <zkasio/testing/ensemble.hpp>

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <vector>

namespace zkasio::test {
namespace {

std::string script() { return source_dir() + "/scripts/kerberos_realm.sh"; }

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

std::string text_of(const std::string& file) {
    std::ifstream said(file);
    return std::string(std::istreambuf_iterator<char>(said), std::istreambuf_iterator<char>());
}

}  // namespace

std::string kerberos_realm::impossible() {
    const std::unique_ptr<FILE, int (*)(FILE*)> said(::popen((script() + " --missing").c_str(), "r"), &::pclose);
    char name[64] = {};
    if (!said || !std::fgets(name, sizeof name, said.get())) return "";
    return "no " + std::string(name, std::strcspn(name, "\n"));
}

kerberos_realm::kerberos_realm() : port_(testing::free_port()) {
    ::setenv("KRB5_CONFIG", config().c_str(), 1);
    ::setenv("KRB5CCNAME", ("FILE:" + files_ / "tickets").c_str(), 1);
    std::vector<std::string> args{script(), files_.path(), std::to_string(port_)};
    std::vector<char*> argv;
    for (std::string& a : args) argv.push_back(a.data());
    argv.push_back(nullptr);
    if (::posix_spawn(&kdc_, argv[0], nullptr, nullptr, argv.data(), environ) != 0)
        throw std::runtime_error(args.front() + " does not start");
    for (int i = 0; i < 6000 && !accepts_connections(port_); ++i) {
        if (::waitpid(kdc_, nullptr, WNOHANG) == kdc_) {
            kdc_ = -1;
            break;
        }
        ::poll(nullptr, 0, 10);
    }
    if (!accepts_connections(port_)) throw std::runtime_error("the KDC does not answer: " + text_of(files_ / "log"));
}

kerberos_realm::~kerberos_realm() {
    if (kdc_ > 0) {
        ::kill(kdc_, SIGKILL);
        ::waitpid(kdc_, nullptr, 0);
    }
    for (const char* name : {"KRB5_CONFIG", "KRB5CCNAME"}) ::unsetenv(name);
}

void kerberos_realm::run(const std::string& command) const {
    const std::string log = files_ / "command.log";
    if (std::system(("PATH=\"$PATH:/usr/sbin:/sbin\"; { " + command + "; } > " + log + " 2>&1").c_str()) == 0) return;
    throw std::runtime_error(command + ": " + text_of(log));
}

void kerberos_realm::log_in(const std::string& options) const { run("echo wonder | kinit " + options + " alice"); }

void kerberos_realm::log_out() const { run("kdestroy -q || true"); }

void kerberos_realm::pause_kdc() const { ::kill(kdc_, SIGSTOP); }

void kerberos_realm::resume_kdc() const { ::kill(kdc_, SIGCONT); }

}  // namespace zkasio::test
