#pragma once

#include <cstdint>

namespace zkasio::test {

/// ZooKeeper's numbers of its operations.
struct opcode {
    enum number : std::int32_t {
        close_session = -11,
        remove = 2,
        exists = 3,
        get = 4,
        set = 5,
        get_acl = 6,
        set_acl = 7,
        sync = 9,
        ping = 11,
        children = 12,
        multi = 14,
        create = 15,  // create2
        reconfigure = 16,
        remove_watches = 18,
        create_container = 19,
        create_ttl = 21,
        multi_read = 22,
        auth = 100,
        set_watches = 101,
        ephemerals = 103,
        count_below = 104,
        add_watch = 106,
        who_am_i = 107,
    };
};

}  // namespace zkasio::test
