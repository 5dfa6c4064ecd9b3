#pragma once

#include <zookeeper/zookeeper.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// A session of libzookeeper_st as its bare functions make it, driven by poll().
class raw_session {
public:
    explicit raw_session(const std::string& server);
    ~raw_session();
    raw_session(const raw_session&) = delete;
    raw_session& operator=(const raw_session&) = delete;

    zhandle_t* handle() const { return zh_; }

    // With a round trip each; they throw std::runtime_error.
    std::string create(const std::string& path, int mode);
    void set(const std::string& path, const std::string& data);
    int children(const std::string& path);  ///< their number
    void remove(const std::string& path);   ///< if it is there and empty

private:
    zhandle_t* zh_;
};

/// Waits until something has happened to one of the sessions or `fd` has become readable, at most `ms`.
/// Returns whether `fd` is readable.
bool turn(std::initializer_list<raw_session*> sessions, int fd = -1, int ms = -1);

/// Many sessions, driven by epoll.
class raw_sessions {
public:
    explicit raw_sessions(std::vector<raw_session*> all);
    ~raw_sessions();
    raw_sessions(const raw_sessions&) = delete;
    raw_sessions& operator=(const raw_sessions&) = delete;

    /// Waits until something has happened to some of them, at most a second.
    void turn();

private:
    struct member {
        raw_session* session;
        int socket = -1;
        std::uint32_t events = 0;
    };
    void arm(std::size_t i);

    std::vector<member> all_;
    int epoll_;
    double armed_ = 0;  // all of them
};

void check(int rc);  ///< aborts unless ZOK: for callbacks

std::string new_node_name();                ///< "_c_<uuid>-lock-", Curator's
int sequence_of(std::string_view node);     ///< its last ten digits

}  // namespace bench
