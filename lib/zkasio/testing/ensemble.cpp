#include <zkasio/testing/ensemble.hpp>

#include <zkasio/asio_version.hpp>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zkasio::testing {

namespace fs = std::filesystem;
using asio::ip::tcp;

std::uint16_t free_port(const std::string& address) {
    asio::io_context io;
    tcp::acceptor a(io, tcp::endpoint(asio::ip::make_address(address), 0));
    return a.local_endpoint().port();
}

std::string four_letter_command(const std::string& host_port, const std::string& four_letters) {
    const auto colon = host_port.rfind(':');
    asio::io_context io;
    tcp::socket s(io);
    std::error_code failed;
    s.connect(tcp::endpoint(asio::ip::make_address(host_port.substr(0, colon)),
                            static_cast<std::uint16_t>(std::stoi(host_port.substr(colon + 1)))), failed);
    if (failed) return {};
    asio::write(s, asio::buffer(four_letters), failed);
    // A server that is starting or stopping may accept and never answer. (Asio's own read would wait for ever.)
    std::string answer;
    std::array<char, 4096> part;
    pollfd readable{s.native_handle(), POLLIN, 0};
    while (::poll(&readable, 1, 2000) > 0) {
        const ssize_t n = ::recv(s.native_handle(), part.data(), part.size(), 0);
        if (n <= 0) break;
        answer.append(part.data(), static_cast<std::size_t>(n));
    }
    return answer;
}

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

// Empty: there is none.
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

std::string ensemble_address(int server) { return "127.0.0." + std::to_string(server + 1); }

}  // namespace

std::string ensemble::impossible(const server_options& options) {
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

struct ensemble::impl {
    struct node {
        std::uint16_t port = 0, secure_port = 0;
        pid_t pid = -1;
    };

    impl(int count, server_options o);
    ~impl();
    std::string dir_of(int server) const { return dir + "/" + std::to_string(server); }
    void configure(int server) const;
    void launch(int server);
    bool serves(int server) const;
    void wait_until_serving(int server);
    void end(int server, int signal);
    pid_t running(int server, const char* asked_by) const;
    std::string ask(const std::string& four_letters, int server) const {
        return four_letter_command(ensemble_address(server) + ":" + std::to_string(nodes.at(index(server)).port),
                                   four_letters);
    }
    std::string log(int server) const;
    static std::size_t index(int server) { return static_cast<std::size_t>(server); }

    server_options options;
    std::string java, class_path, dir, connect_string;
    std::vector<node> nodes;
    std::vector<std::string> members;  // the lines of the configuration that name them
};

ensemble::impl::impl(int count, server_options o) : options(std::move(o)) {
    const std::string why = impossible(options);
    if (!why.empty()) throw std::runtime_error("testing::ensemble: " + why);
    if (count < 1 || count > 9 || count % 2 == 0)
        throw std::invalid_argument("testing::ensemble: 1, or an odd number up to 9, not " + std::to_string(count));
    java = java_of(options);
    class_path = class_path_of(options);
    std::string pattern = (fs::temp_directory_path() / "zkasio-test.XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::system_error(errno, std::generic_category(), "mkdtemp");
    dir = pattern;
    nodes.resize(index(count));
    for (int i = 0; i < count; ++i) {
        const std::string address = ensemble_address(i);
        nodes[index(i)].port = free_port(address);
        if (options.has_tls()) nodes[index(i)].secure_port = free_port(address);
        if (count > 1)
            members.push_back("server." + std::to_string(i + 1) + "=" + address + ":" +
                              std::to_string(free_port(address)) + ":" + std::to_string(free_port(address)));
        connect_string += (i ? "," : "") + address + ":" + std::to_string(nodes[index(i)].port);
    }
}

ensemble::impl::~impl() {
    for (int i = 0; i < static_cast<int>(nodes.size()); ++i) end(i, SIGKILL);
    std::error_code ignored;
    fs::remove_all(dir, ignored);
}

void ensemble::impl::configure(int server) const {
    fs::create_directories(dir_of(server) + "/data");
    std::ofstream config(dir_of(server) + "/zoo.cfg");
    config << "tickTime=" << options.tick().count() << "\ninitLimit=20\nsyncLimit=10\ndataDir=" << dir_of(server)
           << "/data\nclientPortAddress=" << ensemble_address(server) << "\nclientPort=" << nodes[index(server)].port
           << "\nmaxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\nreconfigEnabled=true\n";
    if (options.has_tls())
        config << "secureClientPortAddress=" << ensemble_address(server)
               << "\nsecureClientPort=" << nodes[index(server)].secure_port
               << "\nserverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\nssl.keyStore.location="
               << options.tls_key() << "\nssl.keyStore.type=PEM\nssl.trustStore.location=" << options.tls_ca()
               << "\nssl.trustStore.type=PEM\n"
                  "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider\n";
    for (const std::string& line : members) config << line << '\n';
    for (const std::string& line : options.lines()) config << line << '\n';
    if (!members.empty()) std::ofstream(dir_of(server) + "/data/myid") << server + 1 << '\n';
    config.close();
    if (!config) throw std::runtime_error("testing::ensemble: cannot write " + dir_of(server) + "/zoo.cfg");
}

void ensemble::impl::launch(int server) {
    std::vector<std::string> args;
    if (const std::string setpriv = program_in_path("setpriv"); !setpriv.empty())
        args = {setpriv, "--pdeathsig", "KILL"};
    // Its disk is not what is tested: no waiting for it. A container's node is looked after every second.
    for (const char* arg : {"-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
                            "-Dzookeeper.extendedTypesEnabled=true", "-Dzookeeper.forceSync=no",
                            "-Dznode.container.checkIntervalMs=1000", "-cp"}) {
        if (arg == std::string("-Xmx256m")) args.push_back(java);
        args.push_back(arg);
    }
    args.push_back(class_path);
    args.push_back("org.apache.zookeeper.server.quorum.QuorumPeerMain");
    args.push_back(dir_of(server) + "/zoo.cfg");
    std::vector<char*> argv;
    for (std::string& a : args) argv.push_back(a.data());
    argv.push_back(nullptr);
    const std::string log_file = dir_of(server) + "/log";
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, 1, log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::posix_spawn_file_actions_adddup2(&files, 1, 2);
    pid_t pid = -1;
    const int failed = ::posix_spawn(&pid, argv[0], &files, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    if (failed) throw std::system_error(failed, std::generic_category(), "testing::ensemble: " + args[0]);
    nodes[index(server)].pid = pid;
}

// The port for TLS is opened after the other one.
bool ensemble::impl::serves(int server) const {
    if (ask("srvr", server).find("Mode:") == std::string::npos) return false;
    const std::uint16_t port = nodes[index(server)].secure_port;
    if (port == 0) return true;
    asio::io_context io;
    tcp::socket s(io);
    std::error_code refused;
    s.connect(tcp::endpoint(asio::ip::make_address(ensemble_address(server)), port), refused);
    return !refused;
}

void ensemble::impl::wait_until_serving(int server) {
    const auto give_up = std::chrono::steady_clock::now() + patience_with_servers;
    while (!serves(server)) {
        pid_t& pid = nodes[index(server)].pid;
        if (::waitpid(pid, nullptr, WNOHANG) > 0) {
            pid = -1;
            throw std::runtime_error("testing::ensemble: server " + std::to_string(server) + " has ended:\n" +
                                     log(server));
        }
        if (std::chrono::steady_clock::now() > give_up)
            throw std::runtime_error("testing::ensemble: server " + std::to_string(server) +
                                     " does not serve:\n" + log(server));
        ::poll(nullptr, 0, 20);
    }
}

void ensemble::impl::end(int server, int signal) {
    pid_t& pid = nodes.at(index(server)).pid;
    if (pid < 0) return;
    ::kill(pid, signal);
    if (signal != SIGKILL) ::kill(pid, SIGCONT);  // one that is paused
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid = -1;
}

pid_t ensemble::impl::running(int server, const char* asked_by) const {
    const pid_t pid = nodes.at(index(server)).pid;
    if (pid < 0)
        throw std::logic_error(std::string("testing::ensemble::") + asked_by + ": server " + std::to_string(server) +
                               " does not run");
    return pid;
}

std::string ensemble::impl::log(int server) const {
    constexpr std::size_t most = 4000;
    std::ifstream in(dir_of(server) + "/log");
    std::ostringstream text;
    text << in.rdbuf();
    const std::string all = text.str();
    return all.size() > most ? "..." + all.substr(all.size() - most) : all;
}

ensemble::ensemble(int count, server_options options) : impl_(std::make_unique<impl>(count, std::move(options))) {
    for (int i = 0; i < count; ++i) {
        impl_->configure(i);
        impl_->launch(i);
    }
    for (int i = 0; i < count; ++i) impl_->wait_until_serving(i);
}

ensemble::~ensemble() = default;

const std::string& ensemble::connect_string() const noexcept { return impl_->connect_string; }
int ensemble::size() const noexcept { return static_cast<int>(impl_->nodes.size()); }
std::string ensemble::address(int server) const { return ensemble_address(server); }
std::uint16_t ensemble::port(int server) const { return impl_->nodes.at(impl::index(server)).port; }

std::string ensemble::secure_endpoint(int server) const {
    return address(server) + ":" + std::to_string(impl_->nodes.at(impl::index(server)).secure_port);
}

void ensemble::stop(int server) { impl_->end(server, SIGTERM); }
void ensemble::kill(int server) { impl_->end(server, SIGKILL); }

void ensemble::start(int server) {
    if (impl_->nodes.at(impl::index(server)).pid >= 0)
        throw std::logic_error("testing::ensemble::start: server " + std::to_string(server) + " runs already");
    impl_->launch(server);
    impl_->wait_until_serving(server);
}

void ensemble::restart(int server) {
    kill(server);
    start(server);
}

void ensemble::pause(int server) {
    const pid_t pid = impl_->running(server, "pause");
    ::kill(pid, SIGSTOP);
    ::waitpid(pid, nullptr, WUNTRACED);  // until it has stopped
}

void ensemble::resume(int server) { ::kill(impl_->running(server, "resume"), SIGCONT); }

std::string ensemble::ask(const std::string& four_letters, int server) const {
    return impl_->ask(four_letters, server);
}

std::string ensemble::mode(int server) const {
    const std::string answer = ask("srvr", server);
    const std::size_t at = answer.find("Mode: ");
    return at == std::string::npos ? "" : answer.substr(at + 6, answer.find('\n', at) - at - 6);
}

int ensemble::leader() const {
    for (int i = 0; i < size(); ++i)
        if (mode(i) == "leader") return i;
    return -1;
}

std::string ensemble::log(int server) const {
    static_cast<void>(port(server));  // that there is one
    return impl_->log(server);
}

}  // namespace zkasio::testing
