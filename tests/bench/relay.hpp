#pragma once

#include <sys/types.h>

#include <string>

namespace bench {

/// Leads connections to a server, in a process of its own: its connections to the server, and what goes through them,
/// are those of its clients.
class relay {
public:
    enum class knows {
        all,
        no_one_watch,  ///< as servers before ZooKeeper 3.6: requests for an added watch are refused, and it hangs up
    };
    explicit relay(const std::string& server, knows what = knows::all);
    relay(const relay&) = delete;
    relay& operator=(const relay&) = delete;
    ~relay();

    const std::string& address() const noexcept { return address_; }
    pid_t pid() const noexcept { return pid_; }

    // Done when they return.
    void cut();               ///< ends all connections
    void refuse(bool on);     ///< new connections end at once

private:
    void tell(char what);

    std::string address_;
    pid_t pid_ = -1;
    int line_ = -1;
};

}  // namespace bench
