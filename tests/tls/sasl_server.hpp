#pragma once

#include "support/temporary_directory.hpp"
#include "support/test_server.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace zkasio::test {

/// Where the servers of a test find who may log in by SASL, and the program that starts a server with that.
class sasl_setup {
public:
    /// @param section of the JAAS configuration, without its name
    /// @param properties of the Java program: "-Dname=value ..."
    explicit sasl_setup(const std::string& section, const std::string& properties = {}) {
        std::ofstream(files_ / "jaas.conf") << "Server {\n" << section << "\n};\n";
        std::ofstream(files_ / "java") << "#!/bin/sh\nexec java -Djava.security.auth.login.config="
                                       << files_ / "jaas.conf" << ' ' << properties << " \"$@\"\n";
        std::filesystem::permissions(files_ / "java", std::filesystem::perms::owner_all);
    }
    /// For users with passwords: `user_alice="wonder"`.
    static std::string digest(const std::string& users) {
        return "org.apache.zookeeper.server.auth.DigestLoginModule required " + users + ';';
    }
    testing::server_options options(testing::server_options o = {}) const {
        return o.java(files_ / "java")
            .line("authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider");
    }

private:
    temporary_directory files_;
};

/// The setting by which servers demand a login.
enum class sasl_demand {
    none,
    of_sessions,  ///< sessionRequireClientSASLAuth
    enforced,     ///< enforce.auth.enabled
    both
};

/// A real ZooKeeper with the users alice ("wonder") and bob ("builder").
class zookeeper_with_sasl {
public:
    explicit zookeeper_with_sasl(sasl_demand how = sasl_demand::none, testing::server_options o = {})
        : server_(1, demanding(setup_.options(std::move(o)), how)) {}
    std::string address() const { return server_.connect_string(); }
    test_server& process() noexcept { return server_; }

private:
    static testing::server_options demanding(testing::server_options o, sasl_demand how) {
        if (how == sasl_demand::of_sessions || how == sasl_demand::both) o.line("sessionRequireClientSASLAuth=true");
        if (how == sasl_demand::enforced || how == sasl_demand::both)
            o.line("enforce.auth.enabled=true").line("enforce.auth.schemes=sasl");
        return o;
    }

    sasl_setup setup_{sasl_setup::digest(R"(user_alice="wonder" user_bob="builder")")};
    test_server server_;
};

}  // namespace zkasio::test
