#pragma once

#include "support/temporary_directory.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace zkasio::test {

/// A Kerberos realm of the test's own, ZKASIO.TEST, with one KDC on the loopback. While it exists, it is the realm of
/// this process (KRB5_CONFIG), and its tickets are those of this process (KRB5CCNAME). scripts/kerberos_realm.sh makes
/// it, and says who its users are; keytab() has the key of zookeeper/localhost.
class kerberos_realm {
public:
    /// Empty, or what is missing on this machine.
    static std::string impossible();

    kerberos_realm();
    ~kerberos_realm();
    kerberos_realm(const kerberos_realm&) = delete;
    kerberos_realm& operator=(const kerberos_realm&) = delete;

    std::string keytab() const { return files_ / "keytab"; }
    std::string config() const { return files_ / "krb5.conf"; }

    /// Gets a ticket for alice. @param options of kinit, "-l 1s"
    void log_in(const std::string& options = {}) const;
    void log_out() const;
    void pause_kdc() const;   ///< it stays, and does not answer
    void resume_kdc() const;

private:
    void run(const std::string& command) const;

    temporary_directory files_;
    std::uint16_t port_;
    pid_t kdc_ = -1;
};

}  // namespace zkasio::test
