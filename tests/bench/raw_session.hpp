#pragma once

#include <zookeeper/zookeeper.h>

#include <initializer_list>
#include <string>
#include <string_view>

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
    int children(const std::string& path);  ///< their number
    void remove(const std::string& path);   ///< if it is there and empty

private:
    zhandle_t* zh_;
};

/// Waits until something has happened to one of the sessions or `fd` has become readable, at most `ms`.
/// Returns whether `fd` is readable.
bool turn(std::initializer_list<raw_session*> sessions, int fd = -1, int ms = -1);

void check(int rc);  ///< aborts unless ZOK: for callbacks

std::string new_node_name();                ///< "_c_<uuid>-lock-", Curator's
int sequence_of(std::string_view node);     ///< its last ten digits

}  // namespace bench
