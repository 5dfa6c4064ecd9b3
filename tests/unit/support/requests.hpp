#pragma once

#include "support/jute_writer.hpp"

#include <zkasio/detail/seam/backend.hpp>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace zkasio::test {

/// Writes the bodies of requests.
class request_writer : public jute_writer {
public:
    jute_writer& operator()(const detail::create_request& r) {
        text(r.path).text(r.data).acl(r.acl).number(static_cast<std::int32_t>(r.mode));
        return has_ttl(r.mode) ? long_number(r.ttl.count()) : *this;
    }
    jute_writer& operator()(const detail::remove_request& r) { return text(r.path).number(r.version); }
    jute_writer& operator()(const detail::set_request& r) { return text(r.path).text(r.data).number(r.version); }
    jute_writer& operator()(const detail::check_op& r) { return text(r.path).number(r.version); }
    jute_writer& operator()(const detail::exists_request& r) { return text(r.path).boolean(r.watch); }
    jute_writer& operator()(const detail::get_request& r) { return text(r.path).boolean(r.watch); }
    jute_writer& operator()(const detail::children_request& r) { return text(r.path).boolean(r.watch); }
    jute_writer& operator()(const detail::sync_request& r) { return text(r.path); }
    jute_writer& operator()(const detail::get_acl_request& r) { return text(r.path); }
    jute_writer& operator()(const detail::set_acl_request& r) { return text(r.path).acl(r.acl).number(r.version); }
    jute_writer& operator()(const detail::get_config_request& r) { return text("/zookeeper/config").boolean(r.watch); }
    jute_writer& operator()(const detail::reconfig_request& r) {
        return text(r.joining).text(r.leaving).text(r.members).long_number(r.from_version);
    }
    jute_writer& operator()(const detail::add_auth_request& r) { return number(0).text(r.scheme).text(r.credential); }
    jute_writer& operator()(const detail::remove_watch_request& r) { return text(r.path).number(2); }
    jute_writer& operator()(const detail::multi_request& r) {
        for (const detail::multi_op& op : r.ops) {
            number(1).boolean(false).number(-1);
            std::visit(*this, op);
        }
        return number(-1).boolean(true).number(-1);
    }
    jute_writer& operator()(const detail::multi_read_request& r) {
        for (const detail::read_op& op : r.reads) {
            number(std::holds_alternative<detail::get_request>(op) ? 4 : 8).boolean(false).number(-1);
            std::visit(*this, op);
        }
        return number(-1).boolean(true).number(-1);
    }
    jute_writer& operator()(const detail::who_am_i_request&) { return *this; }
    jute_writer& operator()(const detail::ephemerals_request& r) { return text(r.path); }
    jute_writer& operator()(const detail::count_below_request& r) { return text(r.path); }
    jute_writer& operator()(const detail::add_watch_request& r) { return text(r.path).number(r.recursive); }
    jute_writer& operator()(const detail::remove_added_watch_request& r) { return text(r.path).number(3); }
};

inline std::string on_the_wire(const detail::request& r) {
    request_writer w;
    w.number(1).number(1);  // xid and operation
    std::visit(w, r);
    return w.bytes();
}

struct request_sample {
    detail::request what;
    std::string name, path;
    bool is_write;
};

/// One of each, with the longest that is fixed in each.
inline std::vector<request_sample> each_kind_of_request() {
    using namespace detail;
    const acl two{acl_entry(permission::all, anyone()), acl_entry(permission::read, acl_id("ip", "10.0.0.0/8"))};
    create_request plain;
    plain.path = "/a";
    plain.data = "data";
    plain.acl = two;
    create_request with_ttl = plain;
    with_ttl.mode = create_mode::persistent_ttl;
    with_ttl.ttl = std::chrono::milliseconds(1000);
    create_request nothing;
    multi_request empty, all;
    all.ops = {plain, set_request{"/a", "data"}, remove_request{"/a"}, check_op{"/a"}};
    multi_read_request reads;
    reads.reads = {get_request{"/a"}, children_request{"/b"}};
    return {
        {plain, "create", "/a", true},
        {with_ttl, "create", "/a", true},
        {nothing, "create", "", true},
        {remove_request{"/a"}, "remove", "/a", true},
        {set_request{"/a", "data"}, "set", "/a", true},
        {set_acl_request{"/a", two}, "set_acl", "/a", true},
        {reconfig_request{"joining", "leaving", "members"}, "reconfigure", "", true},
        {reconfig_request{}, "reconfigure", "", true},
        {all, "multi", "", true},
        {empty, "multi", "", true},
        {exists_request{"/a", true}, "exists", "/a", false},
        {get_request{"/a", true}, "get", "/a", false},
        {children_request{"/a", true}, "children", "/a", false},
        {sync_request{"/a"}, "sync", "/a", false},
        {get_acl_request{"/a"}, "get_acl", "/a", false},
        {get_config_request{true}, "get_config", "", false},
        {add_auth_request{"digest", "user:password"}, "add_auth", "", false},
        {add_auth_request{}, "add_auth", "", false},
        {remove_watch_request{"/a", watch_kind::children}, "remove watch", "/a", false},
        {reads, "multi_read", "", false},
        {multi_read_request{}, "multi_read", "", false},
        {who_am_i_request{}, "who_am_i", "", false},
        {ephemerals_request{"/a"}, "ephemerals", "/a", false},
        {count_below_request{"/a"}, "count_below", "/a", false},
        {add_watch_request{"/a", true}, "add watch", "/a", false},
        {remove_added_watch_request{"/a"}, "remove added watch", "/a", false},
    };
}

}  // namespace zkasio::test
