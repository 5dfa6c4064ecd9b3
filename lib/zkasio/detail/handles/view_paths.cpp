#include <zkasio/detail/handles/view_paths.hpp>

#include <string>
#include <utility>
#include <variant>

namespace zkasio::detail {
namespace {

class root_adder {
public:
    root_adder(const view_roots& views, view_id view) : views_(views), view_(view) {}

    void operator()(create_request& r) const {
        // The server appends a number to this path: it names no node, and may end with '/'.
        const bool is_name_a_number = is_sequential(r.mode) && r.path == "/";
        r.path = is_name_a_number ? views_.root_of(view_) + "/" : views_.whole(view_, std::move(r.path));
    }
    void operator()(multi_request& r) const {
        for (multi_op& op : r.ops) std::visit(*this, op);
    }
    void operator()(multi_read_request& r) const {
        for (read_op& op : r.reads) std::visit(*this, op);
    }
    template <class Row>
    void operator()(Row& r) const {
        if constexpr (requires { r.path; }) r.path = views_.whole(view_, std::move(r.path));
    }

private:
    const view_roots& views_;
    const view_id view_;
};

}  // namespace

void put_root_in_front(core& on, view_id view, command& c) {
    c.is_whole = true;
    std::visit(root_adder(on.views(), view), *c.what);
}

void take_root_away(core& on, view_id view, reply& r) {
    r.path = on.views().shown(view, std::move(r.path));
    for (multi_result& one : r.results) one.path = on.views().shown(view, std::move(one.path));
}

}  // namespace zkasio::detail
