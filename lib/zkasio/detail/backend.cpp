#include <zkasio/detail/backend.hpp>

namespace zkasio::detail {
namespace {

template <class... F>
struct overloaded : F... {
    using F::operator()...;
};

std::size_t size_of(const zkasio::acl& acl) {
    std::size_t n = 4;
    for (const acl_entry& e : acl) n += 12 + e.who().scheme().size() + e.who().id().size();
    return n;
}

std::size_t size_of(const create_request& r) { return 32 + r.path.size() + r.data.size() + size_of(r.acl); }
std::size_t size_of(const set_request& r) { return 16 + r.path.size() + r.data.size(); }
std::size_t size_of(const remove_request& r) { return 12 + r.path.size(); }
std::size_t size_of(const check_op& r) { return 12 + r.path.size(); }

}  // namespace

bool is_write(const request& r) noexcept {
    return std::visit(overloaded{[](const create_request&) { return true; }, [](const remove_request&) { return true; },
                                 [](const set_request&) { return true; }, [](const set_acl_request&) { return true; },
                                 [](const reconfig_request&) { return true; },
                                 [](const multi_request&) { return true; }, [](const auto&) { return false; }},
                      r);
}

std::string_view operation_name(const request& r) noexcept {
    return std::visit(
        overloaded{[](const create_request&) { return "create"; }, [](const remove_request&) { return "remove"; },
                   [](const set_request&) { return "set"; }, [](const exists_request&) { return "exists"; },
                   [](const get_request&) { return "get"; }, [](const children_request&) { return "children"; },
                   [](const sync_request&) { return "sync"; }, [](const get_acl_request&) { return "get_acl"; },
                   [](const set_acl_request&) { return "set_acl"; },
                   [](const get_config_request&) { return "get_config"; },
                   [](const reconfig_request&) { return "reconfigure"; },
                   [](const add_auth_request&) { return "add_auth"; }, [](const multi_request&) { return "multi"; },
                   [](const remove_watch_request&) { return "remove watch"; }},
        r);
}

std::string_view path_of(const request& r) noexcept {
    return std::visit(
        [](const auto& req) -> std::string_view {
            if constexpr (requires { req.path; })
                return req.path;
            else
                return {};
        },
        r);
}

std::size_t encoded_size(const request& r) noexcept {
    constexpr std::size_t header = 16;
    return header + std::visit(overloaded{[](const create_request& c) { return size_of(c); },
                                          [](const set_request& s) { return size_of(s); },
                                          [](const set_acl_request& s) { return 16 + s.path.size() + size_of(s.acl); },
                                          [](const multi_request& m) {
                                              std::size_t n = 9;
                                              for (const multi_op& op : m.ops)
                                                  n += 9 + std::visit([](const auto& o) { return size_of(o); }, op);
                                              return n;
                                          },
                                          [](const add_auth_request& a) {
                                              return 16 + a.scheme.size() + a.credential.size();
                                          },
                                          [](const reconfig_request& c) {
                                              return 24 + c.joining.size() + c.leaving.size() + c.members.size();
                                          },
                                          [](const get_config_request&) { return std::size_t{24}; },
                                          [](const auto& other) { return 16 + other.path.size(); }},
                               r);
}

}  // namespace zkasio::detail
