#include <zkasio/testing/detail/server_processes.hpp>

#include <zkasio/testing/ensemble.hpp>

#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zkasio::testing_detail {

namespace fs = std::filesystem;
using testing::server_options;

namespace {

constexpr const char* debian_class_path = "/usr/share/java/zookeeper.jar";
// Debian 12's ZooKeeper speaks TLS, but does not find all of Netty that it needs for that.
constexpr const char* debian_class_path_for_tls = "/usr/share/java/zookeeper.jar:/usr/share/java/netty-codec.jar";
constexpr std::chrono::seconds patience_with_servers(60);

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

bool is_program(const std::string& path) { return ::access(path.c_str(), X_OK) == 0 && !fs::is_directory(path); }

// Empty: no such program.
std::string program_in_path(const std::string& name) {
    std::istringstream dirs(variable("PATH"));
    for (std::string dir; std::getline(dirs, dir, ':');)
        if (const std::string path = (dir.empty() ? "." : dir) + "/" + name; is_program(path)) return path;
    return {};
}

std::string java_of(const server_options& o) {
    if (!o.java().empty())
        return o.java().find('/') != std::string::npos ? o.java() : program_in_path(o.java());
    if (const std::string home = variable("JAVA_HOME"); !home.empty() && is_program(home + "/bin/java"))
        return home + "/bin/java";
    return program_in_path("java");
}

std::string class_path_of(const server_options& o) {
    if (!o.class_path().empty()) return o.class_path();
    if (const std::string given = variable("ZKASIO_ZOOKEEPER_CLASSPATH"); !given.empty()) return given;
    if (!fs::exists(debian_class_path)) return {};
    return o.has_tls() ? debian_class_path_for_tls : debian_class_path;
}

using clock = std::chrono::steady_clock;

// Pauses between two polls of a state whose changes are not notified.
void pause_between_looks(const std::atomic<bool>& cancelled) {
    if (cancelled) throw std::system_error(std::error_code(asio::error::operation_aborted));
    ::poll(nullptr, 0, 10);
}

std::string text_of(int server) { return "server " + std::to_string(server); }

}  // namespace

std::string why_no_servers(const server_options& options) {
    const std::string java = java_of(options);
    if (java.empty() || !is_program(java))
        return (options.java().empty() ? "no Java" : "no program \"" + options.java() + "\"") +
               std::string(": install a JRE (Debian: default-jre-headless), set JAVA_HOME, or give "
                           "server_options::java()");
    if (class_path_of(options).empty())
        return "no ZooKeeper: install it (Debian: zookeeper), set ZKASIO_ZOOKEEPER_CLASSPATH, or give "
               "server_options::class_path()";
    return {};
}

// --------------------------------------------------------------------------------------------- configuration

server_processes::server_processes(int count, server_options options) : options_(std::move(options)) {
    const std::string why = why_no_servers(options_);
    if (!why.empty()) throw std::runtime_error("testing::ensemble: " + why);
    if (count < 1 || count > 9 || count % 2 == 0)
        throw std::invalid_argument("testing::ensemble: 1, or an odd number up to 9, not " + std::to_string(count));
    java_ = java_of(options_);
    class_path_ = class_path_of(options_);
    nodes_.resize(static_cast<std::size_t>(count));
    choose_ports();
    std::string pattern = (fs::temp_directory_path() / "zkasio-test.XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::system_error(errno, std::generic_category(), "mkdtemp");
    dir_ = pattern;
}

server_processes::~server_processes() {
    for (int i = 0; i < size(); ++i) kill(i);
    std::error_code ignored;
    fs::remove_all(dir_, ignored);
}

void server_processes::choose_ports() {
    const bool several = size() > 1;
    if (several && options_.has_partitions()) peers_ = std::make_unique<peer_network>(size());
    for (int i = 0; i < size(); ++i) {
        std::vector<std::uint16_t> taken;
        const auto another = [&] {
            std::uint16_t port = 0;
            do port = testing::free_port(address(i));
            while (std::find(taken.begin(), taken.end(), port) != taken.end());
            taken.push_back(port);
            return port;
        };
        std::string member = "server." + std::to_string(i + 1) + "=";
        if (peers_) {
            const peer_network::ports ports = peers_->of(i);
            taken = std::vector<std::uint16_t>{ports.quorum, ports.election};
            member += peer_network::name_of(i) + ":" + std::to_string(ports.quorum) + ":" +
                      std::to_string(ports.election);
        } else if (several) {
            const std::uint16_t quorum = another(), election = another();
            member += address(i) + ":" + std::to_string(quorum) + ":" + std::to_string(election);
        }
        at(i).port = another();
        if (options_.has_tls()) at(i).secure_port = another();
        const std::string for_clients = address(i) + ":" + std::to_string(at(i).port);
        if (several) members_.push_back(member + ';' + for_clients);
        connect_string_ += (i ? "," : "") + for_clients;
    }
}

void server_processes::configure(int server) const {
    fs::create_directories(dir_of(server) + "/data");
    std::ofstream config(dir_of(server) + "/zoo.cfg");
    config << "tickTime=" << options_.tick().count() << "\ninitLimit=20\nsyncLimit=10\ndataDir=" << dir_of(server)
           << "/data\nclientPortAddress=" << address(server) << "\nclientPort=" << at(server).port
           << "\nmaxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\nreconfigEnabled=true\n";
    if (options_.has_tls())
        config << "secureClientPortAddress=" << address(server)
               << "\nsecureClientPort=" << at(server).secure_port
               << "\nserverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\nssl.keyStore.location="
               << options_.tls_key() << "\nssl.keyStore.type=PEM\nssl.trustStore.location=" << options_.tls_ca()
               << "\nssl.trustStore.type=PEM\n"
                  "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider\n";
    // A read-only server opens no other sessions than local ones.
    if (options_.reads_without_quorum()) config << "localSessionsEnabled=true\nlocalSessionsUpgradingEnabled=true\n";
    for (const std::string& line : members_) config << line << '\n';
    for (const std::string& line : options_.lines()) config << line << '\n';
    if (!members_.empty()) std::ofstream(dir_of(server) + "/data/myid") << server + 1 << '\n';
    if (peers_) std::ofstream(dir_of(server) + "/hosts") << peers_->hosts(server);
    config.close();
    if (!config) throw std::runtime_error("testing::ensemble: cannot write " + dir_of(server) + "/zoo.cfg");
}

std::vector<std::string> server_processes::command(int server) const {
    std::vector<std::string> args;
    if (const std::string setpriv = program_in_path("setpriv"); !setpriv.empty())
        args = {setpriv, "--pdeathsig", "KILL"};
    args.push_back(java_);
    // The disk is not under test: no waiting for it. Empty containers are looked for every second.
    for (const char* arg :
         {"-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dzookeeper.extendedTypesEnabled=true",
          "-Dzookeeper.forceSync=no", "-Dznode.container.checkIntervalMs=1000"})
        args.emplace_back(arg);
    if (options_.reads_without_quorum()) args.emplace_back("-Dreadonlymode.enabled=true");
    if (peers_) {
        args.push_back("-Djdk.net.hosts.file=" + dir_of(server) + "/hosts");
        // By default, a server that gets no answer repeats its election message after up to a minute.
        args.emplace_back("-Dzookeeper.fastleader.maxNotificationInterval=500");
    }
    for (const std::string& arg : {std::string("-cp"), class_path_,
                                   std::string("org.apache.zookeeper.server.quorum.QuorumPeerMain"),
                                   dir_of(server) + "/zoo.cfg"})
        args.push_back(arg);
    return args;
}

// ------------------------------------------------------------------------------------------------- processes

void server_processes::launch(int server) {
    std::vector<std::string> args = command(server);
    std::vector<char*> argv;
    for (std::string& a : args) argv.push_back(a.data());
    argv.push_back(nullptr);
    const std::string log_file = dir_of(server) + "/log";
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, 1, log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::posix_spawn_file_actions_adddup2(&files, 1, 2);
    // Asio's sockets are inherited: a connection that the server had, too, would not end when this process closes it.
    ::posix_spawn_file_actions_addclosefrom_np(&files, 3);
    pid_t pid = -1;
    const int failed = ::posix_spawn(&pid, argv[0], &files, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    if (failed) throw std::system_error(failed, std::generic_category(), "testing::ensemble: " + args[0]);
    at(server).pid = pid;
    at(server).paused = false;
    at(server).starting = true;
}

// When the process has ended, its id is discarded: another process may soon have the same id.
bool server_processes::runs(int server) {
    node& n = at(server);
    if (n.pid < 0) return false;
    pid_t ended = 0;
    do ended = ::waitpid(n.pid, nullptr, WNOHANG);
    while (ended < 0 && errno == EINTR);
    if (ended == 0) return true;
    n.pid = -1;
    n.paused = n.starting = false;
    return false;
}

pid_t server_processes::running(int server, const char* asked_by) {
    if (!runs(server))
        throw std::logic_error(std::string("testing::ensemble::") + asked_by + ": " + text_of(server) +
                               " does not run");
    return at(server).pid;
}

bool server_processes::ends_within(int server, std::chrono::nanoseconds limit, const flag& cancelled) {
    const auto until = clock::now() + limit;
    while (runs(server)) {
        if (clock::now() > until) return false;
        pause_between_looks(cancelled);
    }
    return true;
}

void server_processes::give_up(const std::string& what, int server) const {
    throw std::runtime_error("testing::ensemble: " + text_of(server) + what + ":\n" + log(server));
}

void server_processes::start_all(const flag& cancelled) {
    for (int i = 0; i < size(); ++i) {
        configure(i);
        launch(i);
    }
    const auto until = clock::now() + patience_with_servers;
    for (int i = 0; i < size(); ++i)
        while (!serves(i)) {
            if (clock::now() > until) give_up(" does not serve", i);
            pause_between_looks(cancelled);
        }
}

// The servers that run and that `server` can talk to, with `server` itself; empty if they are too few for a quorum.
std::vector<int> server_processes::who_can_serve_with(int server) {
    std::vector<int> all;
    for (int i = 0; i < size(); ++i)
        if (i == server || (runs(i) && !at(i).paused && !(peers_ && !peers_->are_connected(server, i))))
            all.push_back(i);
    if (2 * static_cast<int>(all.size()) <= size()) all.clear();
    return all;
}

// The server opens its TLS port after the other port.
bool server_processes::accepts_tls(int server) const {
    const std::uint16_t port = secure_port(server);
    if (port == 0) return true;
    asio::io_context io;
    std::error_code refused;
    asio::ip::tcp::socket(io).connect({asio::ip::make_address(address(server)), port}, refused);
    return !refused;
}

// Throws if the process has ended.
bool server_processes::serves(int server) {
    if (ask("srvr", server).find("Mode:") != std::string::npos && accepts_tls(server)) {
        at(server).starting = false;
        return true;
    }
    if (!runs(server)) give_up(" has ended", server);
    return false;
}

void server_processes::start(int server, const flag& cancelled) {
    if (runs(server)) throw std::logic_error("testing::ensemble::start: " + text_of(server) + " runs already");
    launch(server);
    const auto until = clock::now() + patience_with_servers;
    // Servers that were started before there was a quorum have not been waited for yet.
    for (const int i : who_can_serve_with(server))
        while (at(i).starting && !serves(i)) {
            if (clock::now() > until) give_up(" does not serve", i);
            pause_between_looks(cancelled);
        }
}

void server_processes::stop(int server, const flag& cancelled) {
    if (!runs(server)) return;
    ::kill(at(server).pid, SIGTERM);
    ::kill(at(server).pid, SIGCONT);  // a paused process has to continue, to end
    at(server).paused = false;
    if (!ends_within(server, patience_with_servers, cancelled)) give_up(" does not stop", server);
}

void server_processes::kill(int server) {
    if (!runs(server)) return;
    node& n = at(server);
    ::kill(n.pid, SIGKILL);
    while (::waitpid(n.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    n.pid = -1;
    n.paused = n.starting = false;
}

void server_processes::pause(int server, const flag& cancelled) {
    const pid_t pid = running(server, "pause");
    if (at(server).paused) return;
    ::kill(pid, SIGSTOP);
    siginfo_t about{};
    // Wait until the process has stopped; WNOWAIT: if it has ended instead, runs() sees that.
    while (::waitid(P_PID, static_cast<id_t>(pid), &about, WSTOPPED | WEXITED | WNOHANG | WNOWAIT) == 0 &&
           about.si_pid == 0)
        pause_between_looks(cancelled);
    running(server, "pause");
    at(server).paused = true;
}

void server_processes::resume(int server) {
    ::kill(running(server, "resume"), SIGCONT);
    at(server).paused = false;
}

void server_processes::connect(int a, int b, bool on) {
    static_cast<void>(at(a));
    static_cast<void>(at(b));
    if (!peers_ && size() > 1)
        throw std::logic_error("testing::ensemble: the servers talk to each other directly, and nobody can come "
                               "between them: give server_options::partitions()");
    if (a != b) peers_->connect(a, b, on);
}

// ------------------------------------------------------------------------------------------------- questions

std::string server_processes::ask(const std::string& four_letters, int server) const {
    return testing::four_letter_command(address(server) + ":" + std::to_string(port(server)), four_letters);
}

std::string server_processes::mode(int server) const {
    const std::string answer = ask("srvr", server);
    const std::size_t at = answer.find("Mode: ");
    return at == std::string::npos ? "" : answer.substr(at + 6, answer.find('\n', at) - at - 6);
}

int server_processes::leader(int other_than) const {
    for (int i = 0; i < size(); ++i)
        if (i != other_than && mode(i) == "leader") return i;
    return -1;
}

int server_processes::wait_for_leader(int other_than, const flag& cancelled) const {
    const auto until = clock::now() + patience_with_servers;
    for (;;) {
        if (const int found = leader(other_than); found >= 0) return found;
        if (clock::now() > until) throw std::runtime_error("testing::ensemble: no leader is elected");
        pause_between_looks(cancelled);
    }
}

std::string server_processes::log(int server) const {
    static_cast<void>(at(server));
    constexpr std::size_t most = 4000;
    std::ifstream in(dir_of(server) + "/log");
    std::ostringstream text;
    text << in.rdbuf();
    const std::string all = text.str();
    return all.size() > most ? "..." + all.substr(all.size() - most) : all;
}

}  // namespace zkasio::testing_detail
